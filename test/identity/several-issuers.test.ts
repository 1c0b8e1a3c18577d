/** Several identity providers at one gateway: a token is held to the issuer that it names, and to no other. */
import { beforeAll, describe, expect, it } from 'vitest';
import { runCli } from '../support/cli.ts';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { waitFor } from '../support/processes.ts';
import { writeFiles } from '../support/temp.ts';
import { type Issuer, startIssuer } from './issuer.ts';

let staff: Issuer;
let robots: Issuer;
let gateway: HttpGateway;

const configOf = (issuers: readonly string[][]) =>
  ['controls = []', ...issuers.flatMap((lines) => ['[[http.jwt]]', ...lines])].join('\n');
const ofStaff = () => [`issuer = "${staff.issuer}"`, 'agent_claim = "role"', 'required_scopes = ["tools:use"]'];
const ofRobots = () => [
  `issuer = "${robots.issuer}"`,
  'audience = "robots-only"',
  'algorithms = ["ES256"]',
  'agents = { "robot-*" = "robots" }',
];

beforeAll(async () => {
  staff = await startIssuer('/staff');
  robots = await startIssuer('/robots');
  await staff.rotate('RS256');
  await robots.rotate('RS256');
  await robots.rotate('ES256');
  gateway = await startHttp({ config: configOf([ofStaff(), ofRobots()]) });
});

const staffClaims = (more: object = {}) => ({
  sub: 'ann',
  role: 'crew',
  aud: gateway.url,
  scope: 'tools:use',
  ...more,
});
const robotClaims = (more: object = {}) => ({ sub: 'robot-7', aud: 'robots-only', ...more });
const keyOf = (issuer: Issuer, alg: string) => issuer.keys.find((key) => key.alg === alg)!;

const hello = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
};

async function ask(token: string): Promise<{ status: number; challenge: string }> {
  const { status, headers } = await gateway.post(JSON.stringify(hello), { authorization: `Bearer ${token}` });
  return { status, challenge: headers.get('www-authenticate') ?? '' };
}

describe('a token', () => {
  it('of each issuer is accepted under the rules of that issuer', async () => {
    expect((await ask(await staff.sign(staffClaims()))).status).toBe(200);
    expect((await ask(await robots.sign(robotClaims(), {}, keyOf(robots, 'ES256')))).status).toBe(200);
  });

  it.each([
    [
      'that names one issuer and is signed with a key of the other',
      () => robots.sign(staffClaims({ iss: staff.issuer }), {}, keyOf(robots, 'RS256')),
      'unknown key',
    ],
    [
      'with the key id of the right issuer and the key of the other',
      () => robots.sign(staffClaims({ iss: staff.issuer }), { kid: keyOf(staff, 'RS256').kid }, keyOf(robots, 'RS256')),
      'signature of the token is wrong',
    ],
    ['for the audience of the other', () => staff.sign(staffClaims({ aud: 'robots-only' })), 'another resource'],
    ['with an algorithm of the other', () => robots.sign(robotClaims(), {}, keyOf(robots, 'RS256')), 'algorithm'],
    ['of an issuer that is not listed', () => staff.sign(staffClaims({ iss: `${staff.issuer}/` })), 'another issuer'],
    [
      'that lists both issuers',
      () => staff.sign(staffClaims({ iss: [staff.issuer, robots.issuer] })),
      'another issuer',
    ],
    ['without an issuer', () => staff.sign(staffClaims({ iss: undefined })), 'another issuer'],
  ])('%s is refused', async (_, token, why) => {
    const { status, challenge } = await ask(await token());
    expect([status, challenge]).toEqual([401, expect.stringContaining(why)]);
  });

  it('that lacks a scope is told the scopes of its own issuer', async () => {
    const { status, challenge } = await ask(await staff.sign(staffClaims({ scope: 'openid' })));
    expect([status, challenge]).toEqual([403, expect.stringContaining('scope="tools:use"')]);
    const other = await ask(await robots.sign(robotClaims({ sub: 'ann' }), {}, keyOf(robots, 'ES256')));
    expect([other.status, other.challenge]).toEqual([403, expect.not.stringContaining('scope=')]);
  });
});

it('the metadata of the resource lists all authorization servers', async () => {
  const metadata = await (await fetch(`${gateway.origin}/.well-known/oauth-protected-resource/mcp`)).json();
  expect(metadata).toMatchObject({
    authorization_servers: [staff.issuer, robots.issuer],
    scopes_supported: ['tools:use'],
  });
});

it('taking one issuer out ends its sessions only', async () => {
  const own = await startHttp({ config: configOf([ofStaff(), ofRobots()]) });
  const [ann, robot] = [
    `Bearer ${await staff.sign({ ...staffClaims(), aud: own.url })}`,
    `Bearer ${await robots.sign(robotClaims(), {}, keyOf(robots, 'ES256'))}`,
  ];
  const status = async (authorization: string) => (await own.post(JSON.stringify(hello), { authorization })).status;
  const [annOpened, robotOpened] = [await status(ann), await status(robot)];
  writeFiles(own.cwd, { 'tools.toml': configOf([ofRobots()]) });
  await waitFor(async () => (await status(ann)) === 401);
  expect([annOpened, robotOpened, await status(robot)]).toEqual([200, 200, 200]);
});

it('an issuer that is listed twice is a mistake', async () => {
  const { code, stderr } = await runCli(['list'], { config: configOf([ofStaff(), ofStaff()]) });
  expect([code, stderr]).toEqual([2, expect.stringContaining('http.jwt[1].issuer: is listed twice')]);
});
