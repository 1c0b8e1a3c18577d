/** Checks the probes that docs/operations.md shows, against the gateway that the page has just started. */
import { expect } from 'vitest';
import { parse } from 'yaml';
import type { Check } from '../support/docs-page.ts';

interface Probe {
  readonly httpGet: { readonly path: string; readonly port: number };
}

/** Requests the probe as Kubernetes would: by address, without a credential. */
const probes: Check = async (text, { env }) => {
  const { livenessProbe, readinessProbe } = parse(text) as { livenessProbe: Probe; readinessProbe: Probe };
  for (const { httpGet } of [livenessProbe, readinessProbe]) {
    expect(String(httpGet.port)).toBe(env.CORE_PORT);
    const response = await fetch(`http://127.0.0.1:${httpGet.port}${httpGet.path}`);
    expect(response.status).toBe(200);
  }
};

export const probeChecks: Record<string, Check> = { 'probes.yaml': probes };
