import { expect } from "chai";
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { quote } from "#base/quote.ts";
import { directoryManaged } from "#engine/modules/directory-managed.ts";
import { fileAbsent } from "#engine/modules/file-absent.ts";
import { fileManaged } from "#engine/modules/file-managed.ts";
import { symlinkManaged } from "#engine/modules/symlink-managed.ts";
import { batchBlob, BatchPlanner, batchLine } from "#engine/program/batch.ts";
import { shippedText } from "#engine/program/texts.ts";
import type { Step } from "#engine/step/define.ts";
import { shellsOf } from "#support/shells.ts";
import { stepOf } from "#support/steps.ts";

/** The programs that a batch starts; the stand-ins count their starts. */
const programs = "cat chgrp chmod chown id ln ls mkdir mv readlink rm rmdir sha256sum stat sync".split(" ");

interface BatchRun {
  /** `KEY OUTCOME` of each step that began. */
  readonly outcomes: readonly string[];
  readonly started: readonly string[];
  /** The text of each file of errors: `NAME: TEXT`. */
  readonly errors: string;
}

/** A folder in which a shell applies batches as under a runner. */
class Bench {
  readonly #folder = mkdtempSync(join(tmpdir(), "kcore-batch-unit-"));
  readonly root = join(this.#folder, "root");

  constructor() {
    chmodSync(this.#folder, 0o755);
    for (const name of ["root", "run", "run/tmp", "run/out", "run/blobs", "state", "bin"]) mkdirSync(this.#at(name));
    for (const name of programs) this.standIn(name, "");
    writeFileSync(this.#at("run/attached"), `${process.pid}\n`);
  }

  #at(name: string): string {
    return join(this.#folder, name);
  }

  /** Makes a stand-in that runs this sh text and then the program. */
  standIn(name: string, text: string): void {
    const path = this.#at(`bin/${name}`);
    writeFileSync(
      path,
      `#!/bin/sh\necho ${name} >>${this.#at("started")}\n${text}\nPATH=/usr/bin:/bin exec ${name} "$@"\n`,
    );
    chmodSync(path, 0o755);
  }

  async apply(shell: string, steps: Readonly<Record<string, Step>>): Promise<BatchRun> {
    const planner = new BatchPlanner();
    const lines: string[] = [];
    for (const [key, { data }] of Object.entries(steps)) {
      if (data === undefined) throw new Error(`${key} has no data`);
      const { wave } = planner.place(data);
      lines.push(batchLine(data, { key, wave, seconds: 60, owes: "", shows: false }));
      if (data.kind === "file") {
        const content = await data.blob.read();
        const isText = batchBlob(data.blob).form === "assignment";
        writeFileSync(
          this.#at(`run/blobs/${data.blob.sha256}`),
          isText ? `b_text=${quote(content.toString())}\n` : content,
        );
      }
    }
    for (const name of ["started", "run/batch", "run/current", "journal"]) writeFileSync(this.#at(name), "");
    const [run, state] = [this.#at("run"), this.#at("state")];
    const text = [
      "IFS= read -r k_stat </proc/$$/stat; set -- ${k_stat##*) }; k_born=${20}; set --",
      ...(["step-functions", "step", "files"] as const).map(shippedText),
      `k_nonce=NONCE k_unique=1-1 K_DRY= K_RUN=${run} K_STATE=${state} K_TMP=${run}/tmp K_NODE=n1`,
      `b_data='${lines.join("\n")}\n'`,
      shippedText("batch"),
    ].join("\n");
    writeFileSync(this.#at("program"), text);
    spawnSync("/bin/sh", ["-c", `umask 077; exec ${shell} ${this.#at("program")} 5>>${this.#at("journal")}`], {
      encoding: "utf8",
      env: { PATH: `${this.#at("bin")}:/usr/bin:/bin`, LC_ALL: "C" },
    });
    const words = (name: string) => readFileSync(this.#at(name), "utf8").split("\n").filter(Boolean);
    return {
      outcomes: words("run/batch").flatMap((line) => (line.includes(" begun") ? [] : [line.replace(/ \d+$/, "")])),
      started: words("started"),
      errors: readdirSync(this.#at("run/out"))
        .map((name) => `${name}: ${readFileSync(join(run, "out", name), "utf8")}`)
        .join(""),
    };
  }

  /** Everything below the root: mode, owner, content. */
  tree(at = this.root): string[] {
    return readdirSync(at)
      .toSorted()
      .flatMap((name) => {
        const path = join(at, name);
        const { mode, uid } = lstatSync(path);
        const line = `${path.slice(this.root.length + 1)} ${(mode & 0o7777).toString(8)}${uid === 0 ? "" : ` ${uid}`}`;
        if (lstatSync(path).isSymbolicLink()) return [`${path.slice(this.root.length + 1)} -> ${readlinkSync(path)}`];
        return lstatSync(path).isDirectory()
          ? [line, ...this.tree(path)]
          : [`${line} ${readFileSync(path, "utf8").trim()}`];
      });
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true });
  }
}

const shells = shellsOf(import.meta.filename, ["dash", "bash", "busybox sh", "mksh"]);

for (const shell of shells)
  describe(`batch.sh, in ${shell}`, () => {
    // BusyBox runs its own applets instead of the stand-ins on PATH.
    const usesPath = !shell.startsWith("busybox");
    let bench: Bench;
    const at = (name: string) => join(bench.root, name);
    const folder = (name: string, mode = "0755", owner?: string) =>
      stepOf(directoryManaged, { path: at(name), mode, ...(owner === undefined ? {} : { owner }) });
    const file = (name: string, mode = "0644", owner?: string) =>
      stepOf(fileManaged, { path: at(name), content: `${name}\n`, mode, ...(owner === undefined ? {} : { owner }) });
    const link = (name: string, target: string) => stepOf(symlinkManaged, { path: at(name), target });
    beforeEach(() => (bench = new Bench()));
    afterEach(() => bench.remove());

    it("makes nested folders of four modes with their contents, by one mv", async () => {
      const run = await bench.apply(shell, {
        a: folder("a", "0750"),
        ab: folder("a/b", "0700"),
        abc: folder("a/b/c", "0711"),
        e: folder("e"),
        f1: file("a/f", "0640"),
        f2: file("a/b/c/f", "0600"),
        f3: file("f"),
        l: link("a/b/l", "c"),
      });
      expect(run.errors).to.equal("batch: ");
      expect(bench.tree()).to.deep.equal([
        "a 750",
        "a/b 700",
        "a/b/c 711",
        "a/b/c/f 600 a/b/c/f",
        "a/b/l -> c",
        "a/f 640 a/f",
        "e 755",
        "f 644 f",
      ]);
      expect(run.outcomes).to.deep.equal(["a", "ab", "abc", "e", "f1", "f2", "f3", "l"].map((key) => `${key} changed`));
      if (usesPath) expect(run.started.filter((name) => name === "mv")).to.deep.equal(["mv"]);
    });

    it("replaces files of a folder by one mv, and keeps modes that no step sets", async () => {
      writeFileSync(at("f"), "old", { mode: 0o600 });
      writeFileSync(at("g"), "old", { mode: 0o600 });
      symlinkSync("nowhere", at("l"));
      const run = await bench.apply(shell, {
        f: stepOf(fileManaged, { path: at("f"), content: "f\n" }),
        g: file("g", "0640", "nobody"),
        l: link("l", "f"),
      });
      expect(run.outcomes).to.deep.equal(["f changed", "g changed", "l changed"]);
      expect(bench.tree()).to.deep.equal(["f 600 f", "g 640 65534 g", "l -> f"]);
      if (usesPath) expect(run.started.filter((name) => name === "mv")).to.deep.equal(["mv"]);
    });

    it("removes a path after the steps before it", async () => {
      writeFileSync(at("gone"), "");
      const run = await bench.apply(shell, {
        a: folder("a"),
        f: file("a/f"),
        gone: stepOf(fileAbsent, { path: at("gone") }),
        b: folder("a/b"),
        g: file("a/b/g"),
      });
      expect(run.outcomes).to.deep.equal(["a changed", "f changed", "gone changed", "b changed", "g changed"]);
      expect(bench.tree()).to.deep.equal(["a 755", "a/b 755", "a/b/g 644 a/b/g", "a/f 644 a/f"]);
    });

    it("makes a new folder of another user together with its contents", async () => {
      const run = await bench.apply(shell, {
        home: folder("home", "0700", "nobody"),
        ssh: folder("home/.ssh", "0700", "nobody"),
        keys: file("home/.ssh/keys", "0600", "nobody"),
      });
      expect(run.outcomes).to.deep.equal(["home changed", "ssh changed", "keys changed"]);
      expect(bench.tree()).to.deep.equal([
        "home 700 65534",
        "home/.ssh 700 65534",
        "home/.ssh/keys 600 65534 home/.ssh/keys",
      ]);
    });

    it("refuses root's files in a new folder that another user owns or can write to (S-6)", async () => {
      const run = await bench.apply(shell, {
        theirs: folder("theirs", "0755", "nobody"),
        f: file("theirs/f"),
      });
      expect(run.outcomes.toSorted()).to.deep.equal(["f failed", "theirs changed"]);
      const open = await bench.apply(shell, { open: folder("open", "0777"), f: file("open/f") });
      expect(open.outcomes.toSorted()).to.deep.equal(["f failed", "open changed"]);
      expect(bench.tree()).to.deep.equal(["open 777", "theirs 755 65534"]);
    });

    it("makes no temporary folder in a folder that an earlier step gives to another user (S-6)", async function () {
      if (!usesPath) this.skip();
      mkdirSync(at("e"));
      bench.standIn("mkdir", `case $* in */e/.kcore.*) exit 1 ;; esac`);
      const run = await bench.apply(shell, {
        e: folder("e", "0755", "nobody"),
        sub: folder("e/sub", "0755", "nobody"),
        f: file("e/f", "0644", "nobody"),
        g: file("g"),
      });
      expect(run.outcomes).to.deep.equal(["e changed", "sub changed", "f changed", "g changed"]);
      expect(bench.tree()).to.deep.equal(["e 755 65534", "e/f 644 65534 e/f", "e/sub 755 65534", "g 644 g"]);
    });

    it("applies no step after a failed one", async () => {
      const run = await bench.apply(shell, {
        a: folder("a"),
        b: folder("b".repeat(300)),
        c: folder("a/c"),
        f: file("a/f"),
      });
      expect(run.outcomes.toSorted()).to.deep.equal(["a changed", "b failed", "c interrupted", "f interrupted"]);
      expect(bench.tree()).to.deep.equal(["a 755"]);
      expect(run.errors).to.match(/^b\.e\.0: .*[Ff]ile name too long\nbatch: $/);
    });

    it("reports the moved files when one cannot be moved", async function () {
      if (!usesPath) this.skip();
      bench.standIn("mv", `[ "$1" != -fT ] || { echo no room >&2; exit 1; }\nPATH=/usr/bin:/bin mv "$3" "$5"; exit 1`);
      const run = await bench.apply(shell, { f: file("f"), g: file("g"), h: file("h") });
      expect(run.outcomes.toSorted()).to.deep.equal(["f failed", "g changed", "h interrupted"]);
      expect(bench.tree()).to.deep.equal(["g 644 g"]);
      expect(run.errors).to.contain("f.e.0: no room");
    });

    it("moves nothing into other folders after a file that cannot be moved", async function () {
      if (!usesPath) this.skip();
      for (const name of ["e", "g"]) mkdirSync(at(name));
      bench.standIn("mv", `case $* in *${at("e")}/*) echo no room >&2; exit 1 ;; esac`);
      const run = await bench.apply(shell, { f: file("e/f"), h: file("g/h") });
      expect(run.outcomes.toSorted()).to.deep.equal(["f failed", "h interrupted"]);
      expect(bench.tree()).to.deep.equal(["e 755", "g 755"]);
    });

    it("interrupts the steps beneath a new folder that cannot be moved", async function () {
      if (!usesPath) this.skip();
      bench.standIn("sync", `PATH=/usr/bin:/bin mkdir -p ${at("app/other")}`);
      const run = await bench.apply(shell, { app: folder("app"), f: file("app/f"), z: file("z") });
      expect(run.outcomes.toSorted()).to.deep.equal(["app failed", "f interrupted", "z changed"]);
      expect(bench.tree()).to.deep.equal(["app 700", "app/other 700", "z 644 z"]);
    });

    it("keeps an empty folder that a link replaces, if an earlier step fails", async function () {
      if (!usesPath) this.skip();
      mkdirSync(at("d"));
      bench.standIn("mv", "exit 1");
      const forced = stepOf(symlinkManaged, { path: at("d"), target: "f", force: true });
      const run = await bench.apply(shell, { f: file("f"), l: forced });
      expect(run.outcomes.toSorted()).to.deep.equal(["f failed", "l interrupted"]);
      expect(bench.tree()).to.deep.equal(["d 755"]);
    });

    describe("with a content of more than 1 MiB", () => {
      const large = () => stepOf(fileManaged, { path: at("large"), content: "large\n".repeat(200_000) });
      const readers = ({ started }: BatchRun) => started.filter((name) => name === "cat" || name === "sha256sum");

      it("reads it once", async () => {
        const run = await bench.apply(shell, { large: large() });
        expect(run.outcomes).to.deep.equal(["large changed"]);
        if (usesPath) expect(readers(run)).to.deep.equal(["cat"]);
        expect((await bench.apply(shell, { large: large() })).outcomes).to.deep.equal(["large ok"]);
      });

      it("reads it again if a write to the file came before the proof", async function () {
        if (!usesPath) this.skip();
        bench.standIn("mv", `PATH=/usr/bin:/bin; mv "$@" && touch -d @1 ${at("large")}; exit`);
        const run = await bench.apply(shell, { large: large() });
        expect(run.outcomes).to.deep.equal(["large changed"]);
        expect(readers(run)).to.deep.equal(["cat", "sha256sum"]);
      });

      it("fails if another writer changed the file before the proof", async function () {
        if (!usesPath) this.skip();
        bench.standIn("mv", `PATH=/usr/bin:/bin; mv "$@" && echo more >>${at("large")}; exit`);
        expect((await bench.apply(shell, { large: large() })).outcomes).to.deep.equal(["large failed"]);
      });
    });

    it("removes the temporary folder of a killed shell", async () => {
      mkdirSync(at(".kcore.1.1"));
      writeFileSync(at(".kcore.1.1/f"), "half");
      expect((await bench.apply(shell, { l: link("l", "f") })).outcomes).to.deep.equal(["l changed"]);
      mkdirSync(at(".kcore.1.1"));
      expect((await bench.apply(shell, { f: file("f") })).outcomes).to.deep.equal(["f changed"]);
      expect(bench.tree()).to.deep.equal(["f 644 f", "l -> f"]);
    });
  });
