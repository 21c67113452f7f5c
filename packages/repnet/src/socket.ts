import net from 'node:net';

export class Socket extends net.Socket {}
