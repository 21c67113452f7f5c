import { readFileSync } from 'node:fs';

/** Seconds of a processor that this process and those that it has waited for have taken; 0 where there is no /proc. */
export function processorTime() {
  let stat;
  try {
    stat = readFileSync('/proc/self/stat', 'latin1');
  } catch {
    return 0;
  }
  // After the name, which may hold spaces: utime, stime, cutime and cstime are fields 14 to 17, in hundredths of a second.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0) / 100;
}
