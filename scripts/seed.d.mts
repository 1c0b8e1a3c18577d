export function seedOfCommit(): number;
