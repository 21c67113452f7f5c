/**
 * `instanceof` for a class of ours that programs use in place of one of net's: what Node's own modules make of net's class is one of it.
 * Its subclasses are told from one another as any are.
 */
export function countAsInstances(ours: object, nets: { prototype: object }): void {
  Object.defineProperty(ours, Symbol.hasInstance, {
    value(this: unknown, value: unknown): boolean {
      if (this === ours) return Object.prototype.isPrototypeOf.call(nets.prototype, value as object);
      return Function.prototype[Symbol.hasInstance].call(this as never, value);
    },
  });
}
