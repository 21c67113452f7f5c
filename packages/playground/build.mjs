/**
 * Builds the page: one file that contains the module, the scripts and the stories. `node build.mjs
 * MODULE OUT`
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';

const [module, out] = process.argv.slice(2);
const here = new URL('.', import.meta.url).pathname;
const text = (path) => readFileSync(join(here, path), 'utf8');

/** The most bytes to embed, before they are encoded as text. */
const MOST = 1_500_000;
/** The order of the stories on the page. */
const STORIES = ['elephant', 'second-path', 'incast', 'broken-link', 'mice'];

const scripts = readdirSync(join(here, 'dist')).filter(
  (name) => name.endsWith('.js') && name !== 'worker.js',
);
const imports = Object.fromEntries(
  scripts.map((name) => {
    const plain = text(`dist/${name}`).replaceAll(/from '\.\/([a-z]+)\.js'/g, "from '$1'");
    return [name.replace('.js', ''), `data:text/javascript;base64,${Buffer.from(plain).toString('base64')}`];
  }),
);
// A worker has no import map, so its two scripts are joined.
const worker = ['engine', 'worker']
  .map((name) =>
    text(`dist/${name}.js`)
      .replaceAll(/^import .*\n/gm, '')
      .replaceAll(/^export /gm, ''),
  )
  .concat('serve(self);\n')
  .join('\n');
const packed = gzipSync(readFileSync(module), { level: 9 });
if (packed.length > MOST) {
  throw new Error(`the module has ${packed.length} bytes when it is compressed; at most ${MOST}`);
}
const experiments = STORIES.map((name) => ({
  name,
  text: text(`../../experiments/playground/${name}.toml`),
}));
const safe = (value) => JSON.stringify(value).replaceAll('<', '\\u003c');
const parts = {
  style: text('page/page.css'),
  importmap: safe({ imports }),
  module: packed.toString('base64'),
  worker: worker.replaceAll('</script', '<\\/script'),
  experiments: safe(experiments),
};
const page = text('page/page.html').replaceAll(/\{\{(\w+)\}\}/g, (_, part) => parts[part]);
mkdirSync(dirname(out), { recursive: true });
writeFileSync(out, page);
console.log(`${out}: ${page.length} bytes, of which the module ${packed.length} before base64`);
