// repnet for Node's own tests, which dial each of their servers once: told of the server, so that the first flow is replicated.
const repnet = require('../../dist/index.js');
if (process.env.REPNET_TOLD) repnet.defaults.peer = process.env.REPNET_TOLD;
module.exports = repnet;
