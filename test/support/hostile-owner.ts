import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import {
  chmodSync,
  chownSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { batchLine } from "#engine/program/batch.ts";
import { shippedText } from "#engine/program/texts.ts";
import type { ModuleDefinition } from "#engine/step/define.ts";
import { quote } from "#base/quote.ts";
import { stepOf } from "./steps.ts";

/** The user of the attacking process; it has rights over its own folder alone. */
export const hostileUser = { uid: 65_534, gid: 65_534, name: "nobody", group: "nogroup" } as const;

const untouched = "untouched";

/** Names that root's work makes, and that must not appear in root's own folder. */
const forbiddenNames = ["conf", "entry"];

/**
 * Runs as the owner of a folder until it is killed. As fast as it can, it swaps root's work folder and its contents for links to root's own.
 * In between it pauses, so that root's work progresses.
 */
const attacker = `
const fs = require("node:fs");
const [home, dir, victim, forbidden, names] = process.argv.slice(1);
const tryTo = (work) => { try { return work(); } catch {} };
const links = [victim, forbidden, forbidden + "/sub", ".."];
let turn = 0;
const swap = (path) => {
  const aside = home + "/swapped-" + (turn % 50);
  // A folder of root's can only be moved within its parent.
  tryTo(() => (fs.renameSync(path, aside), true)) ?? tryTo(() => fs.renameSync(path, path.replace(/[^/]*$/, "swapped-" + (turn % 50))));
  tryTo(() => fs.symlinkSync(links[turn % links.length], path));
};
for (;;) {
  turn++;
  for (const name of tryTo(() => fs.readdirSync(dir)) ?? []) if (name.startsWith(".kcore")) { if (turn % 3) swap(dir + "/" + name); }
  const name = names.split(",")[turn % names.split(",").length];
  if (turn % 7 === 0) swap(dir + "/" + name);
  if (turn % 7 === 5 && tryTo(() => fs.readlinkSync(dir + "/" + name))) tryTo(() => fs.unlinkSync(dir + "/" + name));
  if (turn % 5 === 0) { tryTo(() => fs.mkdirSync(dir)); tryTo(() => fs.mkdirSync(dir + "/sub")); tryTo(() => fs.writeFileSync(dir + "/sub/entry", "mine", { flag: "wx" })); }
  if (turn % 7 === 3) { tryTo(() => fs.unlinkSync(dir + "/" + name)); tryTo(() => fs.writeFileSync(dir + "/" + name, "mine", { flag: "wx" })); }
  if (turn % 11 === 0) {
    tryTo(() => fs.renameSync(dir, dir + ".old")); tryTo(() => fs.symlinkSync(forbidden, dir));
    tryTo(() => fs.unlinkSync(dir)); tryTo(() => fs.renameSync(dir + ".old", dir));
  }
  if (turn % 997 === 0) for (const left of tryTo(() => fs.readdirSync(home)) ?? [])
    if (left.startsWith("swapped-")) tryTo(() => fs.rmSync(home + "/" + left, { recursive: true, force: true }));
  const until = turn % 13 === 0 ? Date.now() + 3 : 0;
  while (Date.now() < until);
}
`;

/** A home whose owner attacks, beside root's files that must stay unchanged. */
export class HostileHome {
  readonly root: string;
  /** The owner's folder, in a folder of root's. */
  readonly home: string;
  /** The folder that root works in: the home, or a sticky folder beside it in which every user may make names. */
  readonly dir: string;
  readonly #victim: string;
  readonly #forbidden: string;
  readonly #library: string;
  readonly #own: ReadonlySet<string>;
  #attack: ChildProcess | undefined;

  constructor(place: "home" | "sticky") {
    this.root = mkdtempSync(join(tmpdir(), "kcore-hostile-"));
    chmodSync(this.root, 0o755);
    this.home = join(this.root, "home");
    this.dir = join(this.root, place, "dir");
    mkdirSync(join(this.root, "sticky"));
    chmodSync(join(this.root, "sticky"), 0o1777);
    this.#victim = join(this.root, "victim");
    this.#forbidden = join(this.root, "forbidden");
    this.#library = join(this.root, "library");
    for (const folder of [this.home, this.dir]) {
      mkdirSync(folder, { mode: 0o755 });
      chownSync(folder, hostileUser.uid, hostileUser.gid);
    }
    for (const folder of [this.#forbidden, join(this.#forbidden, "sub")]) {
      mkdirSync(folder);
      writeFileSync(join(folder, "secret"), untouched, { mode: 0o600 });
      for (const name of forbiddenNames) writeFileSync(join(folder, name), untouched, { mode: 0o600 });
    }
    writeFileSync(this.#victim, untouched, { mode: 0o600 });
    mkdirSync(join(this.root, "tmp"), { mode: 0o700 });
    writeFileSync(join(this.root, "source"), "what root writes", { mode: 0o600 });
    for (const folder of ["out", "blobs"]) mkdirSync(join(this.root, folder), { mode: 0o700 });
    writeFileSync(join(this.root, "batch.sh"), shippedText("batch"));
    writeFileSync(
      this.#library,
      `${shippedText("step-functions")}\n${shippedText("step")}\n${shippedText("files")}\nK_TMP='${this.root}/tmp' K_RUN='${this.root}' K_STATE='${this.root}' k_nonce=N k_key=step k_unique=1-1\n`,
    );
    this.#own = new Set([...readdirSync(this.root), "aside", "attached", "batch", "current"]);
  }

  /** The text that a step's shell runs to apply it. */
  applyText(module: ModuleDefinition, args: unknown): string {
    const { apply } = stepOf(module, args);
    return apply?.render({ secret: String, blob: () => quote(join(this.root, "source")) }) ?? "";
  }

  /** The text that a batch runs to apply it; see apply.sh. */
  batchText(module: ModuleDefinition, args: unknown): string {
    const { data } = stepOf(module, args);
    if (!data) throw new Error(`${module.name} is no data with these arguments`);
    if (data.kind === "file")
      writeFileSync(join(this.root, "blobs", data.blob.sha256), `b_text=${quote(String(data.blob.bytes))}`);
    const line = batchLine(data, { key: "0123456789ab", wave: 1, seconds: 60, owes: "", shows: true });
    return `K_DRY= k_born=1 b_data=${quote(line)}
cd "$K_RUN" && : >batch && : >current && echo $$ >attached || exit 1
. ./batch.sh
grep -q changed "$K_RUN/batch"`;
  }

  /** Makes the owner's files in its folder. */
  fill(names: readonly string[]): void {
    for (const name of names) {
      const path = join(this.dir, name);
      mkdirSync(join(path, ".."), { recursive: true });
      writeFileSync(path, "the owner's");
    }
    spawnSync("chown", ["-R", "-h", `${hostileUser.uid}:${hostileUser.gid}`, this.dir]);
  }

  /** Lets the owner attack the names in its folder. */
  async unleash(...names: readonly string[]): Promise<void> {
    this.#attack = spawn(
      process.execPath,
      ["-e", attacker, this.home, this.dir, this.#victim, this.#forbidden, names.join(",")],
      { uid: hostileUser.uid, gid: hostileUser.gid, stdio: "ignore" },
    );
    await new Promise((resolve) => this.#attack?.once("spawn", resolve));
  }

  /** Repeats `work` as root, as steps do it, after `before` each time. Returns the number of successes. */
  async repeat(shell: string, times: number, work: string, before = ":"): Promise<number> {
    const text = `. '${this.#library}'
umask 022
tries=0 done=0
while [ $((tries += 1)) -le ${times} ]; do
  ( ${before} ) >/dev/null 2>&1
  ( ${work} ) 3>/dev/null 5>/dev/null >/dev/null 2>&1 </dev/null && done=$((done + 1))
done
echo "done $done"
`;
    const child = spawn("/bin/sh", ["-c", `exec ${shell}`], { stdio: ["pipe", "pipe", "inherit"] });
    child.stdin.end(text);
    let output = "";
    child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
    await new Promise((resolve) => child.once("close", resolve));
    const [, count] = /done (\d+)/.exec(output) ?? [];
    if (count === undefined) throw new Error(`${shell} ended early: ${output}`);
    return Number(count);
  }

  /** The changes to root's own files; empty if all is well. */
  get damage(): readonly string[] {
    const found: string[] = [];
    const look = (path: string, names?: readonly string[]): void => {
      const { uid, gid, mode } = lstatSync(path);
      const wanted = names ? 0o755 : 0o600;
      if (uid !== 0 || gid !== 0 || (mode & 0o7777) !== wanted)
        found.push(`${path} is ${(mode & 0o7777).toString(8)} of ${uid}:${gid}`);
      if (names === undefined) {
        if (readFileSync(path, "utf8") !== untouched) found.push(`${path} was written`);
        return;
      }
      for (const name of names) look(join(path, name), name === "sub" ? ["secret", ...forbiddenNames] : undefined);
      for (const name of readdirSync(path)) if (!names.includes(name)) found.push(`${path}/${name} was made`);
    };
    try {
      look(this.#victim);
      look(this.#forbidden, ["secret", ...forbiddenNames, "sub"]);
      const left = readdirSync(this.root).filter((name) => !this.#own.has(name));
      if (left.length > 0) found.push(`${left.join(", ")} was made in ${this.root}`);
    } catch (error) {
      found.push(String(error));
    }
    return found;
  }

  restrain(): void {
    this.#attack?.kill("SIGKILL");
    this.#attack = undefined;
  }

  remove(): void {
    this.restrain();
    rmSync(this.root, { recursive: true, force: true });
  }
}
