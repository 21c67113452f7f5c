/** A self-signed certificate for localhost, made by openssl once per test process. */
import { execFileSync } from 'node:child_process';

let made;

/** { key, cert } in PEM. */
export function certificate() {
  made ??= make();
  return made;
}

function make() {
  const pem = execFileSync(
    'openssl',
    [
      'req',
      '-x509',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:prime256v1',
      '-nodes',
      '-keyout',
      '-',
      '-out',
      '-',
      '-days',
      '2',
      '-subj',
      '/CN=localhost',
      '-addext',
      'subjectAltName=DNS:localhost,IP:127.0.0.1',
    ],
    { stdio: ['ignore', 'pipe', 'ignore'], encoding: 'latin1' },
  );
  const [key] = /-----BEGIN PRIVATE KEY-----[\s\S]*?-----END PRIVATE KEY-----\n/.exec(pem);
  const [cert] = /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----\n/.exec(pem);
  return { key, cert };
}
