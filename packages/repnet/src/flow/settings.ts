/** Options of an application's socket that concern each connection of its flow. */
import type { Handle } from '../net-internals.js';
import type { Flow } from './flow.js';
import type { Leg } from './leg.js';
import { REPLICA } from './machine.js';

/** A handle that stands for the connections of a flow. One that is not established yet gets the settings when it is. */
export function handleOfAll(flow: Flow): Partial<Handle> {
  const every = (work: (leg: Leg) => number): number => {
    let status = 0;
    for (const leg of flow.legs) if (leg !== undefined) status ||= work(leg);
    return status;
  };
  return {
    // Records never wait for acknowledgements.
    setNoDelay: (on) => every((leg) => (leg.copy === REPLICA ? 0 : leg.setNoDelay(on))),
    setKeepAlive: (...how) => every((leg) => leg.setKeepAlive(...how)),
    setTypeOfService: (value) => every((leg) => leg.setTypeOfService(value)),
  };
}
