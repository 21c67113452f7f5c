/** What is sent through the balancer, and from what builds. `olderServers`: two of the three, before they are restarted. */
export const MODES = {
  net: { library: 'net' },
  RepFlow: { replicate: 'flow' },
  'RepFlow hedged': { replicate: 'flow', copyDelay: 2 },
  RepSYN: { replicate: 'syn' },
  'RepFlow, server first': { replicate: 'flow', olderServers: true },
};
