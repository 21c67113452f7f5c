/**
 * Takes one non-public part of net away from whoever looks for it, as a future version of Node may; net itself goes on
 * working. `part`: 'Socket.name', 'Server.name' and 'net.name' (a method), 'TCP.name' (a method of the native handle),
 * 'symbol name', or what a call of net's is to do otherwise.
 */
const net = require('node:net');

const owners = { Socket: net.Socket.prototype, Server: net.Server.prototype, net };

/** Replaces a function of `object`; returns what puts it back. */
function replace(object, name, make) {
  const before = object[name];
  object[name] = make(before);
  return () => {
    object[name] = before;
  };
}

const hide = (hides) =>
  replace(
    Reflect,
    'get',
    (get) =>
      (object, key, ...rest) =>
        hides(object, key) ? undefined : get(object, key, ...rest),
  );

/** Net's own method, which fails on a handle that is no native one: net asks something new of it. */
const failForOthers = (owner, method) =>
  replace(
    owner,
    method,
    (before) =>
      function (...args) {
        if (this._handle !== null && !['TCP', 'Pipe'].includes(this._handle.constructor.name))
          throw new TypeError(`${method} needs something that this handle has not`);
        return before.apply(this, args);
      },
  );

/** Returns what gives the part back. */
exports.takeAway = (part) => {
  const [kind, name] = part.split(/[. ]/);
  if (part === 'Socket._handle')
    return replace(
      Object,
      'getOwnPropertyDescriptor',
      (own) => (object, key) =>
        object === net.Socket.prototype && key === '_handle' ? undefined : own(object, key),
    );
  if (kind in owners) return hide((object, key) => object === owners[kind] && key === name);
  if (kind === 'TCP') return hide((object, key) => object?.constructor?.name === 'TCP' && key === name);
  if (kind === 'symbol')
    return replace(
      Object,
      'getOwnPropertySymbols',
      (own) => (object) => own(object).filter(({ description }) => description !== name),
    );
  if (part === 'a write') return failForOthers(net.Socket.prototype, '_writeGeneric');
  if (part === 'an end') return failForOthers(net.Socket.prototype, '_final');
  if (part === 'listening') return failForOthers(net.Server.prototype, '_listen2');
  if (part === '') return () => {};
  throw new Error(`no such part: ${part}`);
};
