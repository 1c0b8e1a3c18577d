/** The name and version of this program. */

/** The version of this package. */
export const VERSION: string = '0.1.0';

export const IDENTITY = { name: 'toolgate', version: VERSION };

/** Names the id of a gateway in `_meta`. A gateway that is among its own servers recognizes itself and does not list itself forever. */
export const INSTANCE_KEY = 'toolgate/instance';
