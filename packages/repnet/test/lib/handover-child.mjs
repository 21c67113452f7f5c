/** The process that a socket is handed to: answers what it reads, and says what it got. */
process.on('message', (name, socket) => {
  if (socket === undefined || name === 'nothing') return process.send({ name, got: false });
  socket.on('error', () => {});
  socket.on('data', (chunk) => socket.end(`${name}: ${chunk}`));
  process.send({ name, got: true });
});
process.on('disconnect', () => process.exit());
process.send('ready');
