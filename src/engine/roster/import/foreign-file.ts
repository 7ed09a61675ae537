/** A file of another program: as it is shown, and its text. */
export interface ForeignFile {
  readonly file: string;
  readonly text: string;
}

/** A file that an operator gave, or a folder of Ansible's inventories. */
export interface GivenFile extends ForeignFile {
  readonly isFolder?: boolean;
  /** Whether `group_vars` or `host_vars` lie beside it. */
  readonly hasVariables?: boolean;
}
