/** The version of this package, as its package.json states it. */
export const { version } = require('../package.json') as { version: string };
