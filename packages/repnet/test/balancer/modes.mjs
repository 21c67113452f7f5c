/** What is sent through the balancer, and from what builds. `olderServers`: two of the three, before they are restarted. */
export const MODES = {
  net: { library: 'net' },
  'RepFlow by address': { replicate: 'flow' },
  'RepFlow by token': { replicate: 'flow', pairing: 'token' },
  'RepFlow hedged': { replicate: 'flow', copyDelay: 2 },
  RepSYN: { replicate: 'syn' },
  'RepFlow by address, server first': { replicate: 'flow', olderServers: true },
  'RepFlow by token, server first': { replicate: 'flow', pairing: 'token', olderServers: true },
};
