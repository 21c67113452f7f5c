import net from 'node:net';

export class Server extends net.Server {}
