/** Ways out of the sandbox of a worker. None of them works, for root and for other users. */
import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { isolate } from '../../src/workers/isolation.ts';
import { isWithoutIsolation } from '../support/needs.ts';
import { tempFolder } from '../support/temp.ts';

const isRoot = process.getuid?.() === 0;
/** `nobody`. */
const OTHER = 65_534;
const users: [string, number][] = isRoot
  ? [
      ['root', 0],
      ['another user', OTHER],
    ]
  : [['another user', process.getuid!()]];

interface Place {
  readonly folder: string;
  readonly dataDir: string;
  readonly sockets: string;
  readonly home: string;
}

/** Shell commands that succeed only if they get out. `outside`: whether they succeed for the same user without a sandbox. */
const ESCAPES: [name: string, command: (place: Place) => string, outside?: true][] = [
  ['is root', () => 'test "$(id -u)" = 0'],
  ['has an effective capability', () => 'grep -q "^CapEff:.*[1-9a-f]" /proc/self/status'],
  ['may get a capability', () => 'grep -q "^CapBnd:.*[1-9a-f]" /proc/self/status'],
  ['may gain privileges by running a program', () => 'grep -q "^NoNewPrivs:.*0" /proc/self/status'],
  ['makes a user namespace', () => 'unshare --user true'],
  ['becomes root in a user namespace', () => 'unshare --user --map-root-user true'],
  ['mounts a file system', () => 'mount -t tmpfs none /tmp'],
  ['makes the system writable', () => 'mount -o remount,rw,bind /usr'],
  ['unmounts what covers the data folder', ({ dataDir }) => `umount ${dataDir}`],
  ['changes its root folder', () => 'chroot / true'],
  ['makes a device', () => 'mknod /tmp/disk b 254 0'],
  ['opens a disk', () => 'for disk in /dev/[svx]d* /dev/nvme* /dev/mapper/*; do test -e $disk && exit 0; done; exit 1'],
  ['opens the memory of the machine', () => 'head -c 1 /dev/mem || head -c 1 /dev/kmem || head -c 1 /proc/kcore'],
  ['reads the log of the kernel', () => 'head -c 1 /dev/kmsg || timeout 1 head -c 1 /proc/kmsg'],
  ['sets the program for core dumps', () => 'echo "|/tmp/x" > /proc/sys/kernel/core_pattern'],
  ['changes another setting of the kernel', () => 'echo 1 > /proc/sys/vm/drop_caches'],
  ['restarts the machine', () => 'test -w /proc/sysrq-trigger'],
  ['moves interrupts', () => 'echo 1 > /proc/irq/default_smp_affinity'],
  ['sees devices and control groups', () => 'ls /sys/fs/cgroup /sys/class'],
  ['loads a module', () => 'modprobe dummy || insmod /tmp/x.ko'],
  ['sets the clock', () => 'date -s "2020-01-01"'],
  ['changes its limits upwards', () => 'ulimit -n 99999999'],
  ['reads passwords', () => 'cat /etc/shadow || cat /etc/gshadow || cat /etc/shadow-'],
  ['changes users', () => 'echo x:x:0:0:::/bin/sh >> /etc/passwd'],
  ['reads other files of /etc', () => 'cat /etc/fstab || cat /etc/profile || ls /etc/ssh', true],
  ['reads private keys', () => 'ls /etc/ssl/private || ls /etc/pki/tls/private'],
  ['writes to the programs of the system', () => 'touch /usr/bin/x || touch /usr/local/lib/x || touch /opt/x'],
  ['reads the home folder of the user', ({ home }) => `cat ${home}/private.txt`, true],
  ['reads the secrets of the gateway', ({ dataDir }) => `cat ${dataDir}/secrets.enc`, true],
  ['reads the tools of another namespace', ({ dataDir }) => `cat ${dataDir}/tools/other/secret.ts`, true],
  ['reads the data folder through its own folder', ({ folder }) => `cat ${folder}/../other/secret.ts`, true],
  ['changes its own folder', ({ folder }) => `touch ${folder}/new.ts`, true],
  [
    'sees the process that started it',
    () => `grep -q "^${process.pid}$" /proc/[0-9]*/stat || test -d /proc/${process.pid}`,
    true,
  ],
  ['reads the environment of the gateway', () => `cat /proc/${process.ppid}/environ`],
  ['sees many processes', () => 'test "$(ls -d /proc/[0-9]* | wc -l)" -gt 20', true],
  ['ends its sandbox from the inside', () => 'nsenter --target 1 --mount --pid true'],
  ['uses a program that changes its user', () => 'su -c true || sudo -n true'],
  ['talks to the services of the system', () => 'test -S /run/dbus/system_bus_socket || test -S /var/run/docker.sock'],
];

function placeFor(uid: number): Place {
  const root = tempFolder({
    'home/private.txt': 'private',
    'data/secrets.enc': 'sealed',
    'data/tools/own/data.txt': 'own',
    'data/tools/other/secret.ts': '// of another namespace',
  });
  const place = {
    folder: join(root, 'data/tools/own'),
    dataDir: join(root, 'data'),
    sockets: join(root, 'sockets'),
    home: join(root, 'home'),
  };
  mkdirSync(place.sockets);
  chmodSync(root, 0o755);
  if (isRoot) for (const path of [place.sockets, place.folder]) chownSync(path, uid, uid);
  return place;
}

/** The names of those that succeeded. */
function succeed(command: readonly string[], uid: number): string[] {
  const [program, ...args] = command;
  const { stdout, stderr, status } = spawnSync(program!, args, {
    ...(isRoot && { uid, gid: uid }),
    env: { PATH: process.env.PATH },
    encoding: 'utf8',
    timeout: 60_000,
  });
  expect([status, stdout.endsWith('end\n')], stderr).toEqual([0, true]);
  return stdout.split('\n').slice(0, -2);
}

function scriptOf(escapes: typeof ESCAPES, place: Place): string {
  const lines = escapes.map(
    ([name, command]) => `timeout 5 sh -c '${command(place)}' >/dev/null 2>&1 </dev/null && echo '${name}'`,
  );
  return [...lines, 'echo end'].join('\n');
}

describe.skipIf(await isWithoutIsolation())('an isolated tool of a gateway that runs as', () => {
  it.each(users)('%s does not get out', async (_, uid) => {
    const place = placeFor(uid);
    const { folder, dataDir, sockets } = place;
    const before = readFileSync('/proc/sys/kernel/core_pattern', 'utf8');
    const inside = ['sh', '-c', scriptOf(ESCAPES, place)];
    const command = await isolate(inside, { folder, dataDir, reads: [], writes: [sockets] }, 'required');
    expect(succeed(command, uid)).toEqual([]);
    expect(readFileSync('/proc/sys/kernel/core_pattern', 'utf8')).toBe(before);
    // Without the sandbox these do work, so the table means something.
    const works = ESCAPES.filter(([, , outside]) => outside);
    expect(succeed(['sh', '-c', scriptOf(works, place)], uid)).toEqual(works.map(([name]) => name));
  });

  it.each(users)(
    '%s still reads its folder, writes to its socket folder, and finds names and certificates',
    async (_, uid) => {
      const { folder, dataDir, sockets } = placeFor(uid);
      const script = [
        `cat ${folder}/data.txt`,
        `touch ${sockets}/x`,
        'id -un',
        'test -r /etc/ssl/certs || test -r /etc/pki/tls/certs',
        'test -r /etc/resolv.conf',
        'touch /tmp/x',
      ].join(' && ');
      const command = await isolate(
        ['sh', '-c', `${script} && echo end`],
        { folder, dataDir, reads: [], writes: [sockets] },
        'required',
      );
      expect(succeed(command, uid)).toEqual(['ownnobody']);
    },
  );
});

// As any other user, what is closed to it cannot be served either, and the file system says so.
it.runIf(isRoot && !(await isWithoutIsolation()))(
  'says why the tools of another user cannot be served by root, where that folder is closed',
  async () => {
    const dataDir = tempFolder({ 'tools/mine/a.ts': '' });
    const folder = join(dataDir, 'tools/mine');
    const isolated = () => isolate(['true'], { folder, dataDir, reads: [], writes: [] }, 'auto');
    expect((await isolated())[0]).toBe('bwrap');
    chownSync(dataDir, OTHER, OTHER);
    await expect(isolated()).rejects.toThrow(
      `the gateway runs as root, and ${dataDir} is open only to the user ${OTHER}: in its sandbox not even root may enter it`,
    );
    // Open to everybody, it works: what was refused is what bubblewrap cannot do.
    chmodSync(dataDir, 0o755);
    const [program, ...args] = await isolated();
    expect(spawnSync(program!, args).status).toBe(0);
    chmodSync(dataDir, 0o700);
    expect(spawnSync(program!, args).stderr.toString()).toContain('Permission denied');
  },
);
