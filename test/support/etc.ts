import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { makeTempDir } from "#support/temp-dir.ts";

/** A test's own /etc, for steps that write to fixed paths: this machine's lies below it, and stays as it is. */
export interface Etc {
  /** The shell, with that /etc; further commands run before it, in the same namespaces. */
  shell(shell: string, ...before: string[]): string;
  /** What the steps or the test wrote; undefined: nothing. */
  read(path: string): string | undefined;
  mode(path: string): number;
  write(path: string, text: string): void;
  /** A folder of the test's is not there. */
  hide(path: string): void;
  readonly folder: string;
  remove(): Promise<void>;
}

/** What each of the folders holds is all there is in it. */
export async function inEtc(folders: Readonly<Record<string, Readonly<Record<string, string>>>>): Promise<Etc> {
  const temp = await makeTempDir("etc");
  const upper = join(temp.path, "upper");
  const at = (path: string): string => join(temp.path, "own", path);
  for (const name of ["upper", "work", "own"]) mkdirSync(join(temp.path, name));
  const hidden = new Set<string>();
  const write = (path: string, text: string): void => {
    mkdirSync(dirname(at(path)), { recursive: true });
    writeFileSync(at(path), text, { mode: 0o644 });
  };
  for (const [folder, files] of Object.entries(folders)) {
    mkdirSync(at(folder), { recursive: true });
    for (const [name, text] of Object.entries(files)) write(`${folder}/${name}`, text);
  }
  return {
    folder: temp.path,
    shell: (shell, ...before) => {
      const places = Object.keys(folders).map((folder) =>
        hidden.has(folder)
          ? `rm -rf /etc/${folder}`
          : `mkdir -p /etc/${folder} && mount --bind ${at(folder)} /etc/${folder}`,
      );
      const overlay = `mount -t overlay -o lowerdir=/etc,upperdir=${upper},workdir=${join(temp.path, "work")} overlay /etc`;
      return `unshare -m sh -c '${[overlay, ...places, ...before].join(" && ")} && exec "$0" "$@"' ${shell}`;
    },
    read: (path) => (existsSync(at(path)) ? readFileSync(at(path), "utf8") : undefined),
    mode: (path) => statSync(at(path)).mode & 0o7777,
    write,
    hide: (path) => {
      hidden.add(path);
      rmSync(at(path), { recursive: true });
    },
    remove: () => temp.remove(),
  };
}
