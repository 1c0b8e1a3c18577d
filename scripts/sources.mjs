/** The folders that the build reads. In a file of its own, because each command of a checkout looks at them. */
export const SOURCES = ['src', 'host', 'dashboard/src'];
