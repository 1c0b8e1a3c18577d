/** Gateways in the process of the test, as programs open them. Their fixture servers run in this process, too. */
import * as toolgate from '../../src/index.ts';
import { spawn } from './in-process-server.ts';
import { listWait } from './list-wait.ts';

export function createGateway(config: toolgate.Config, options: toolgate.GatewayOptions = {}): toolgate.Gateway {
  return toolgate.createGateway(config, { spawn, listWait: listWait(), ...options });
}

export function openGateway(config: toolgate.Config, options: toolgate.GatewayOptions = {}): Promise<toolgate.Gateway> {
  return toolgate.openGateway(config, { spawn, listWait: listWait(), ...options });
}
