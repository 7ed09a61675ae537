/** A word without that in which people spell it differently: hyphens, underscores, capitals. */
export function plainWord(word: string): string {
  return word.replaceAll(/[-_]/g, "").toLowerCase();
}

/** A pattern for every spelling of a word: `DiskLayout`, `disk-layout`, `DISK_LAYOUT`. */
export function inAnyCase(word: string): string {
  const letters = plainWord(word)
    .split("")
    .map((one) => (/[a-z]/.test(one) ? `[${one.toUpperCase()}${one}]` : one));
  return `^[-_]*${letters.join("[-_]*")}[-_]*$`;
}
