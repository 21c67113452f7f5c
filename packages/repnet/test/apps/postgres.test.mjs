import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import pg from 'pg';
import repnet from 'repnet';
import { certificate } from './support/certificate.mjs';
import { skipPostgres, startPostgres } from './support/postgres.mjs';
import { MODES } from './support/servers.mjs';

let port;
const cleanups = [];
if (!skipPostgres) {
  before(async () => (port = await startPostgres({ after: (cleanup) => cleanups.unshift(cleanup) })));
  after(async () => {
    for (const cleanup of cleanups) await cleanup();
  });
}

/** How pg takes another transport: a function that gives the socket, which pg then connects. */
const config = (replicate) => ({
  host: '127.0.0.1',
  port,
  user: 'tester',
  database: 'postgres',
  stream: () => new repnet.Socket({ replicate }),
});

for (const replicate of MODES) {
  test(`replicate ${replicate}: queries, parameters and errors against PostgreSQL`, {
    skip: skipPostgres,
  }, async () => {
    const client = new pg.Client(config(replicate));
    await client.connect();
    const { rows } = await client.query('select $1::int + 1 as next, repeat($2, 300000) as long', [41, 'x']);
    assert.deepEqual([rows[0].next, rows[0].long.length], [42, 300_000]);
    await assert.rejects(client.query('select nonsense'), { code: '42703' });
    assert.deepEqual((await client.query('select 1 as one')).rows, [{ one: 1 }]);
    await client.end();
  });

  test(`replicate ${replicate}: a pool under transactions counts exactly`, {
    skip: skipPostgres,
  }, async () => {
    const pool = new pg.Pool({ ...config(replicate), max: 10 });
    await pool.query('drop table if exists counter');
    await pool.query('create table counter as select 0 as n');
    await Promise.all(Array.from({ length: 300 }, () => pool.query('update counter set n = n + 1')));
    assert.deepEqual((await pool.query('select n from counter')).rows, [{ n: 300 }]);
    await pool.end();
  });

  test(`replicate ${replicate}: with TLS`, { skip: skipPostgres }, async () => {
    const client = new pg.Client({
      ...config(replicate),
      ssl: { ca: certificate().cert, servername: 'localhost' },
    });
    await client.connect();
    assert.deepEqual((await client.query('select ssl from pg_stat_ssl where pid = pg_backend_pid()')).rows, [
      { ssl: true },
    ]);
    await client.end();
  });

  test(`replicate ${replicate}: a backend that is ended is an error, not a hang`, {
    skip: skipPostgres,
  }, async () => {
    const client = new pg.Client(config(replicate));
    const failed = new Promise((resolve) => client.once('error', resolve));
    await client.connect();
    await assert.rejects(client.query('select pg_terminate_backend(pg_backend_pid())'), { code: '57P01' });
    assert.ok((await failed) instanceof Error);
  });
}
