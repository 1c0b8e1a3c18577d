import { expect, it } from 'vitest';
import { programIdentity } from '../../../calls/identity.ts';
import { createLoginEntrance } from './login-sessions.ts';

it('somebody who asks for many links, and opens them, ends no link or session of others', () => {
  const { sessions } = createLoginEntrance(() => 'http://127.0.0.1:1', null);
  const [ada, bob] = ['ada', 'bob'].map((agent) => ({ identity: programIdentity(agent), server: null }));
  const link = sessions.invite(ada!);
  const opened = sessions.open(sessions.invite(ada!))!;
  for (let i = 0; i < 1_100; i++) sessions.open(sessions.invite(bob!));
  for (let i = 0; i < 1_100; i++) sessions.invite(bob!);
  expect(sessions.invited(link)?.identity.agent).toBe('ada');
  expect(sessions.find(opened.id)).toBe(opened);
});

it('a link and a session end with the credential that they were made with', () => {
  const { sessions } = createLoginEntrance(() => 'http://127.0.0.1:1', null);
  const identity = programIdentity('ada');
  const link = sessions.invite({ identity, server: null });
  const { id } = sessions.open(sessions.invite({ identity, server: null }))!;
  identity.credential.revocation.isRevoked = true;
  expect([sessions.invited(link), sessions.open(link), sessions.find(id)]).toEqual([null, null, null]);
});
