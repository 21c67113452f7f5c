/**
 * Preloaded: takes one non-public part of net away from whoever looks for it, as a future version of Node may; net itself goes
 * on working. PART: 'Socket.name', 'Server.name' and 'net.name' (a method), 'TCP.name' (a method of the native handle), 'symbol name', or
 * what a call of net's is to do otherwise.
 */
const net = require('node:net');

const { PART = '' } = process.env;
const [kind, name] = PART.split(/[. ]/);
const owners = { Socket: net.Socket.prototype, Server: net.Server.prototype, net };

function hide(hides) {
  const { get } = Reflect;
  Reflect.get = (object, key, ...rest) => (hides(object, key) ? undefined : get(object, key, ...rest));
}

/** Net's own method, which fails on a handle that is no native one: net asks something new of it. */
function failForOthers(owner, method) {
  const before = owner[method];
  owner[method] = function (...args) {
    if (
      this._handle !== null &&
      this._handle.constructor.name !== 'TCP' &&
      this._handle.constructor.name !== 'Pipe'
    )
      throw new TypeError(`${method} needs something that this handle has not`);
    return before.apply(this, args);
  };
}

if (PART === 'Socket._handle') {
  const { getOwnPropertyDescriptor } = Object;
  Object.getOwnPropertyDescriptor = (object, key) =>
    object === net.Socket.prototype && key === '_handle' ? undefined : getOwnPropertyDescriptor(object, key);
} else if (kind in owners) hide((object, key) => object === owners[kind] && key === name);
else if (kind === 'TCP') hide((object, key) => object?.constructor?.name === 'TCP' && key === name);
else if (kind === 'symbol') {
  const { getOwnPropertySymbols } = Object;
  Object.getOwnPropertySymbols = (object) =>
    getOwnPropertySymbols(object).filter(({ description }) => description !== name);
} else if (PART === 'a write') failForOthers(net.Socket.prototype, '_writeGeneric');
else if (PART === 'an end') failForOthers(net.Socket.prototype, '_final');
else if (PART === 'listening') failForOthers(net.Server.prototype, '_listen2');
else if (PART !== '') throw new Error(`no such part: ${PART}`);
