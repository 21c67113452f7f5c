/** What `require` gives, `import` gives by name, and the types declare nothing else. */
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import net from 'node:net';
import { before, test } from 'node:test';
import ts from 'typescript';

const require = createRequire(import.meta.url);
const { exports: entries } = require('../package.json');
const files = Object.entries(entries)
  .filter(([, file]) => file.endsWith('.js'))
  .map(([entry, file]) => ({ name: `repnet${entry.slice(1)}`, types: file.replace(/\.js$/, '.d.ts') }));

/** Names of values (not types) that the declarations of a module export. */
let declared;
before(() => {
  const root = new URL('../', import.meta.url).pathname;
  const paths = files.map(({ types }) => root + types);
  const program = ts.createProgram(paths, { module: ts.ModuleKind.Node16, types: [], noLib: true });
  const checker = program.getTypeChecker();
  declared = paths.map((path) =>
    checker
      .getExportsOfModule(checker.getSymbolAtLocation(program.getSourceFile(path)))
      .filter((symbol) => {
        const target = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
        return target.flags & ts.SymbolFlags.Value;
      })
      .map((symbol) => symbol.name),
  );
});

for (const [i, { name }] of files.entries())
  test(`every name that ${name} declares can be imported by name`, async () => {
    const imported = await import(name);
    const required = require(name);
    assert.ok(declared[i].length > 0);
    for (const each of declared[i]) {
      assert.ok(Object.hasOwn(imported, each), `import { ${each} } from '${name}'`);
      assert.equal(imported[each], required[each], each);
    }
  });

test("every name that Node's own net exports is there, by require and by import", async () => {
  const imported = await import('repnet');
  const required = require('repnet');
  for (const each of Object.keys(net)) {
    assert.ok(each in required, `require('repnet').${each}`);
    assert.ok(each in imported, `import { ${each} } from 'repnet'`);
    assert.equal(imported[each], required[each], each);
  }
});

for (const esModuleInterop of [true, false])
  test(`what TypeScript makes of the ways to import is the module, esModuleInterop ${esModuleInterop}`, () => {
    const ways = ["import * as net from 'repnet'", "import net = require('repnet')"];
    // As of net itself, there is no default import without it.
    if (esModuleInterop) ways.push("import net from 'repnet'", "import { default as net } from 'repnet'");
    for (const way of ways) {
      const compilerOptions = { module: ts.ModuleKind.CommonJS, esModuleInterop };
      const { outputText } = ts.transpileModule(`${way}; export const made = net.createServer;`, {
        compilerOptions,
      });
      const consumer = {};
      new Function('require', 'exports', outputText)(require, consumer);
      assert.equal(consumer.made, require('repnet').createServer, way);
    }
  });

test('the kill switch is seen through every way of importing', async () => {
  const { defaults, disable, enable, isEnabled } = await import('repnet');
  disable();
  assert.equal(defaults.enabled, false);
  assert.equal(require('repnet').isEnabled(), false);
  enable();
  defaults.enabled = false;
  assert.equal(isEnabled(), false);
  defaults.enabled = true;
  assert.equal(isEnabled(), true);
});
