/** Which private parts of Node the source uses: found in its syntax, by what it calls the objects of Node that it describes. */
import { readdirSync, readFileSync } from 'node:fs';
import ts from 'typescript';

const root = new URL('../../src/', import.meta.url).pathname;

/** Interfaces of ours whose members are properties of Node's objects: those are private unless Node's types have them. */
const DESCRIBED = ['Handle', 'Request', 'ConnectRequest', 'TcpHandle', 'NativeStream', 'Internals', 'Inner'];
/** A property that Node keeps under a symbol of this name. */
const SYMBOL = /^(k[A-Z]\w+|owner_symbol)$/;
const UNDERSCORED = /^_[a-zA-Z]\w*$/;

function nameOf(node) {
  if (node === undefined) return undefined;
  return ts.isIdentifier(node) || ts.isStringLiteralLike(node) ? node.text : undefined;
}

/** The names in one file. */
function namesIn(source) {
  const found = new Set();
  const visit = (node) => {
    if (ts.isPropertyAccessExpression(node) && UNDERSCORED.test(node.name.text)) found.add(node.name.text);
    // Members of classes, interfaces and object literals, not parameters.
    if ((ts.isClassElement(node) || ts.isTypeElement(node) || ts.isObjectLiteralElement(node)) && node.name) {
      const name = nameOf(node.name);
      const of = ts.isTypeElement(node) ? nameOf(node.parent.name) : undefined;
      if (name !== undefined && (UNDERSCORED.test(name) || DESCRIBED.includes(of))) found.add(name);
    }
    if (ts.isStringLiteralLike(node) && (UNDERSCORED.test(node.text) || SYMBOL.test(node.text)))
      found.add(node.text);
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

/** Each file of the library: its name under src/, and its text. */
export function sources() {
  return readdirSync(root, { recursive: true })
    .map(String)
    .filter((file) => file.endsWith('.ts'))
    .sort()
    .map((file) => [file, readFileSync(root + file, 'utf8')]);
}

/** name -> the files that use it, in order. */
export function usedInternals() {
  const used = new Map();
  for (const [file, text] of sources()) {
    const source = ts.createSourceFile(file, text, ts.ScriptTarget.ES2022, true);
    for (const name of namesIn(source)) used.set(name, [...(used.get(name) ?? []), file]);
  }
  return used;
}
