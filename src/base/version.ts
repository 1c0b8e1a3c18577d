/** Who we say we are. */
import { randomUUID } from 'node:crypto';

/** The version of this package. */
export const VERSION: string = '0.1.0';

export const IDENTITY = { name: 'toolgate', version: VERSION };

/** Tells this very process from every other: a gateway that finds itself among its servers would list itself forever. */
export const INSTANCE_KEY = 'toolgate/instance';
export const INSTANCE = randomUUID();
