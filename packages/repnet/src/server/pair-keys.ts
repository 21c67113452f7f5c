/** By what the two connections of a flow are recognised. */
import type { Leg } from '../flow/leg.js';
import { comparableAddress, type Hello } from '../wire.js';

export function keyOf(address: string | undefined, port: number | undefined): string {
  return `${comparableAddress(address)}|${port}`;
}

/** The client sees the connection come from where we do: nobody has translated its address. */
export function sameSource(leg: Leg, hello: Hello): boolean {
  return hello.sourcePort === leg.remotePort && hello.sourceAddress === comparableAddress(leg.remoteAddress);
}

/** 'host:port' (IPv6 in brackets) in the form a hello is compared in. */
export function comparableTarget(address: string): string {
  const colon = address.lastIndexOf(':');
  const host = address.slice(0, colon).replace(/^\[|\]$/g, '');
  return `${comparableAddress(host)}:${address.slice(colon + 1)}`;
}
