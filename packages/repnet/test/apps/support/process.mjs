/** Child processes of tests: started, awaited by what they print, ended by their id. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { after } from 'node:test';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('../../../', import.meta.url));

/** In a test's place for what the tests of a file share; called while the file is loaded. Ended when those are over. */
export function wholeFile() {
  const ends = [];
  after(async () => {
    for (const end of ends.reverse()) await end();
  });
  return { after: (end) => ends.push(end) };
}

/** Run a program to its end. */
export async function run(program, args, options = {}) {
  const child = spawn(program, args, { cwd: root, ...options });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text) => (stderr += text));
  const [code, signal] = await once(child, 'close');
  return { code, signal, stdout, stderr };
}

/** Start a program that prints one JSON line when it is ready; the test's end kills it if it still runs. */
export async function start(t, program, args, options = {}) {
  const child = spawn(program, args, { cwd: root, ...options });
  const output = { stdout: '', stderr: '' };
  const closed = once(child, 'close').then(([code, signal]) => ({ code, signal, ...output }));
  t.after(async () => {
    child.kill('SIGKILL');
    await closed;
  });
  child.stderr.setEncoding('utf8').on('data', (text) => (output.stderr += text));
  const ready = await new Promise((resolve, reject) => {
    child.stdout.setEncoding('utf8').on('data', (text) => {
      output.stdout += text;
      const end = output.stdout.indexOf('\n');
      if (end >= 0) resolve(JSON.parse(output.stdout.slice(0, end)));
    });
    closed.then(({ code }) =>
      reject(new Error(`${program} ended with ${code} before it was ready: ${output.stderr}`)),
    );
  });
  return {
    ready,
    pid: child.pid,
    kill: (signal) => child.kill(signal),
    /** Resolves to { code, signal, stdout, stderr } when the program has ended. */
    closed,
  };
}

export const startNode = (t, file, args, options) => start(t, process.execPath, [file, ...args], options);
export const runNode = (file, args, options) => run(process.execPath, [file, ...args], options);

/** The full path of a program, or undefined; Debian keeps some outside the PATH of users. */
export async function findProgram(name, folders = []) {
  const path = [process.env.PATH, '/usr/sbin', '/sbin', ...folders].join(':');
  const { code, stdout } = await run('/bin/sh', ['-c', `command -v ${name}`], {
    env: { ...process.env, PATH: path },
  });
  return code === 0 ? stdout.trim() : undefined;
}
