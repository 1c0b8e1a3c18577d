/** Whether a process of this number runs on this machine. It may be another one than before: numbers are used again. */
export function isAlive(pid: number): boolean {
  // 0 and negative numbers address process groups.
  if (!Number.isSafeInteger(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
