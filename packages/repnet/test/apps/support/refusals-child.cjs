/** refusals-child.cjs MAIN LINES: runs a program's main once for each command line; prints what it ended with and said. */
const [, , main, lines] = process.argv;

async function outcomeOf(line) {
  let stderr = '';
  const [said, printed] = [process.stderr.write, process.stdout.write];
  process.stderr.write = (text) => {
    stderr += text;
    return true;
  };
  process.stdout.write = () => true;
  process.argv = [process.execPath, main, ...line];
  process.exitCode = undefined;
  delete require.cache[main];
  require(main);
  // What is refused is refused before anything is waited for.
  await new Promise(setImmediate);
  Object.assign(process.stderr, { write: said });
  Object.assign(process.stdout, { write: printed });
  return { code: process.exitCode, stderr };
}

async function run() {
  const outcomes = [];
  for (const line of JSON.parse(lines)) outcomes.push(await outcomeOf(line));
  process.stdout.write(JSON.stringify(outcomes), () => process.exit(0));
}

run();
