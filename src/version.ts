/** Who we say we are. */
export const VERSION = '0.1.0';

export const CLIENT_INFO = { name: 'toolgate', version: VERSION };
