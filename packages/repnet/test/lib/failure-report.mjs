/** What is repeated of the failures at the end of a run: continuous integration keeps the last lines of its log only. */

const MOST_LINES = 30;
const WIDTH = 800;

/** `failures`: { version, test, message }. Each is named, as far as the lines go, with the beginning of what it says. */
export function failureReport(failures) {
  const shown = failures.slice(0, MOST_LINES / 3);
  const each = Math.floor(MOST_LINES / shown.length) - 1;
  const lines = shown.flatMap(({ version, test, message }) => [
    `  Node ${version} ${test}`,
    ...message
      .split('\n')
      .filter((line) => line.trim() !== '')
      .slice(0, each)
      .map((line) => `    ${line.length > WIDTH ? `${line.slice(0, WIDTH)} …` : line}`),
  ]);
  if (failures.length > shown.length) lines.push(`  and ${failures.length - shown.length} more`);
  return lines;
}
