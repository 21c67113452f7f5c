#!/usr/bin/env node
/** `repnet-bench`: a traffic generator that verifies every byte. */
import { runCommand } from 'repnet-cli/command-line';
import { UsageError } from 'repnet-cli/units';
import { clientHelp, clientMain, planMain } from './client-command.js';
import { labMain } from './lab-host.js';
import { serverHelp, serverMain } from './server-command.js';

const HELP = `repnet-bench: flows over plain TCP, RepSYN and RepFlow, timed and verified

  repnet-bench server --listen HOST:PORT            answer clients
  repnet-bench client --to HOST:PORT ...            send flows, write one CSV row per flow
  repnet-bench plan ...                             print the flows that client would send
  repnet-bench lab                                  a host of Tailcut's kernel lab, which says on standard input what to do

'repnet-bench COMMAND --help' lists the options of a command.`;

async function main(argv: string[]): Promise<number> {
  const [command, ...rest] = argv;
  const wantsHelp = rest.includes('--help');
  switch (command) {
    case 'server':
      return wantsHelp ? show(serverHelp) : serverMain(rest);
    case 'client':
      return wantsHelp ? show(clientHelp) : clientMain(rest);
    case 'plan':
      return wantsHelp ? show(clientHelp) : planMain(rest);
    case 'lab':
      return labMain();
    case '--help':
    case undefined:
      return show(HELP);
    default:
      throw new UsageError(
        'ERR_USAGE',
        `'${command}' is not a command; expected server, client, plan or lab (--help says more)`,
      );
  }
}

function show(text: string): number {
  process.stdout.write(`${text}\n`);
  return 0;
}

void runCommand('repnet-bench', main);
