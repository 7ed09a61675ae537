import { execFile } from "node:child_process";
import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import fc from "#support/properties.ts";
import { appendEntry } from "#audit/append-entry.ts";
import {
  beginning,
  lineHash,
  linkEntry,
  parseEntry,
  Verifier,
  type TrailHead,
  type PlacedLine,
  type TrailCheck,
} from "#audit/chain.ts";
import { openTrail } from "#audit/open-trail.ts";
import { readPage, readTrail } from "#audit/trail-files.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

describe("an audit trail (S-27)", () => {
  const folder = folderOfEachTest("trail");

  function chainOf(count: number): string[] {
    let head = beginning;
    return Array.from({ length: count }, (_, index) => {
      const linked = linkEntry(head, 1_000 + index, { what: `w${index + 1}` });
      ({ head } = linked);
      return linked.line.trimEnd();
    });
  }
  function judge(lines: readonly string[], noted: readonly TrailHead[] = []): TrailCheck {
    const verifier = new Verifier(noted);
    for (const [index, text] of lines.entries()) verifier.add({ file: "f", line: index + 1, text });
    return verifier.verdict();
  }
  async function read(from?: number): Promise<PlacedLine[]> {
    const lines: PlacedLine[] = [];
    for await (const line of readTrail(folder(), from)) lines.push(line);
    return lines;
  }
  const verdict = async (noted: readonly TrailHead[] = [], mustKeep?: number): Promise<TrailCheck> => {
    const verifier = new Verifier(noted, mustKeep);
    for (const line of await read()) verifier.add(line);
    return verifier.verdict();
  };
  /** A literal of the path of the module for programs of the tests. */
  const source = JSON.stringify(join(import.meta.dirname, "../../../src/audit/append-entry.ts"));
  const open = (more: object = {}) =>
    openTrail({ folder: folder(), clock: () => 7, onTrouble: (text) => void troubles.push(text), ...more });
  const until = async (holds: () => boolean): Promise<void> => {
    while (!holds()) await new Promise((resolve) => setImmediate(resolve));
  };
  let troubles: string[];
  beforeEach(() => (troubles = []));

  it("has no damage as written", () => {
    const found = judge(chainOf(20));
    expect(found).to.deep.include({ first: 1, entries: 20, damage: [] });
    expect(found.head.n).to.equal(20);
  });

  it("shows a changed, removed, added or moved line at any place", () => {
    const lines = chainOf(12);
    const { head } = judge(lines);
    const place = fc.nat(lines.length - 1);
    const tampered = fc.oneof(
      fc.tuple(place, fc.nat(), fc.nat(255)).map(([at, where, byte]) => {
        const text = lines[at] ?? "";
        const index = where % text.length;
        return lines.with(at, `${text.slice(0, index)}${String.fromCodePoint(byte)}${text.slice(index + 1)}`);
      }),
      place.map((at) => lines.toSpliced(at, 1)),
      fc.tuple(place, place).map(([at, from]) => lines.toSpliced(at, 0, lines[from] ?? "")),
      fc.tuple(place, place).map(([a, b]) => lines.with(a, lines[b] ?? "").with(b, lines[a] ?? "")),
      // An attacker who knows the format writes all following entries anew.
      place.map((at) => {
        const before = lines.slice(0, at);
        let last = judge(before).head;
        if (at === 0) last = beginning;
        return [
          ...before,
          ...lines.slice(at).map((_, index) => {
            const linked = linkEntry(last, 1, { what: `other${index}` });
            last = linked.head;
            return linked.line.trimEnd();
          }),
        ];
      }),
    );
    fc.assert(
      fc.property(tampered, (changed) => {
        fc.pre(changed.join("\n") !== lines.join("\n"));
        expect(judge(changed, [head]).damage).to.not.deep.equal([]);
      }),
      { numRuns: 500 },
    );
  });

  it("names the damaged line and its fault, and no entries after the line", () => {
    const lines = chainOf(9);
    expect(judge(lines.with(3, lines[3]?.replace("w4", "w5") ?? "")).damage).to.deep.equal([
      { file: "f", line: 5, what: "entry 4 was changed, or entry 5 was written anew" },
    ]);
    expect(judge(lines.toSpliced(3, 2)).damage).to.deep.equal([
      { file: "f", line: 4, what: "entries 4 to 5 are missing" },
    ]);
    expect(judge(lines.with(3, "zzz")).damage).to.deep.equal([
      { file: "f", line: 4, what: "entry 4 is no entry any more" },
    ]);
    const { head } = judge(lines);
    expect(judge(lines.slice(0, 7), [head]).damage).to.deep.equal([
      { file: "f", line: 7, what: "the trail ends at entry 7, but entry 9 was noted" },
    ]);
  });

  /** Records 40 entries, each with a write of its own, so that new files begin; returns the head after each. */
  const recordForty = async (): Promise<TrailHead[]> => {
    const heads: TrailHead[] = [];
    const trail = await open({ segmentBytes: 500, segments: 3 });
    for (let index = 1; index <= 40; index += 1) {
      trail.record({ what: `w${index}` });
      await until(() => trail.head().n >= index);
      heads.push(trail.head());
    }
    await trail.close();
    return heads;
  };

  it("is read from any entry on, page by page, after retention dropped the oldest files", async () => {
    await recordForty();
    expect(readdirSync(folder())).to.have.length(3);
    const kept = await read();
    const found = await verdict([], 1_000);
    expect(found.damage).to.deep.equal([]);
    const numbers = kept.map(({ text }) => (JSON.parse(text) as { n: number }).n);
    expect(kept.filter(({ text }) => text.includes('"w40"'))).to.have.length(1);
    expect(found.first)
      .to.equal(found.head.n - found.entries + 1)
      .and.greaterThan(1);
    expect((await read(found.head.n - 1)).map(({ text }) => (JSON.parse(text) as { n: number }).n)).to.deep.equal(
      numbers.slice(-2),
    );
    // Another program removed the oldest of the kept files.
    const [oldest = ""] = readdirSync(folder()).toSorted();
    const aside = readFileSync(folder(oldest));
    rmSync(folder(oldest));
    expect((await verdict([], 1_000)).damage[0]?.what).to.contain("does not tell that the older ones were dropped");
    writeFileSync(folder(oldest), aside);
    expect((await readPage(folder(), 1)).lines).to.have.length(kept.length);
    expect((await readPage(folder(), 1)).next).to.equal(undefined);
  });

  it("proves a noted head that the first kept entry names, and lists noted heads that were dropped", async () => {
    const heads = await recordForty();
    const { first } = await verdict([], 1_000);
    const before = heads.find(({ n }) => n === first - 1) as TrailHead;
    expect(await verdict([before, heads[0] as TrailHead], 1_000)).to.deep.include({ damage: [], droppedHeads: [1] });
    const forged = { n: before.n, hash: "f".repeat(64) };
    expect((await verdict([forged], 1_000)).damage[0]?.what).to.contain("is not the one that was noted");
    // With a longer retention, or none, the dropped entries should exist.
    for (const mustKeep of [100_000, undefined])
      expect((await verdict([], mustKeep)).damage[0]?.what).to.contain(`begins at entry ${first}`);
  });

  it("is damaged if a forged “dropped” entry replaces its beginning", () => {
    const lines = chainOf(5);
    const noted = { n: 5, hash: lineHash(lines[4] ?? "") };
    let head: TrailHead = { n: 5, hash: "a".repeat(64) };
    const forged = [{ what: "invented" }, { type: "audit.dropped", before: 6, hash: head.hash }].map((fields) => {
      const linked = linkEntry(head, 2_000, fields);
      ({ head } = linked);
      return linked.line.trimEnd();
    });
    expect(judge(forged, [noted]).damage.map(({ what }) => what)).to.deep.equal([
      "the trail begins at entry 6, and drops none",
    ]);
  });

  it("has no entry with a number or time out of range", () => {
    expect(parseEntry(`{"n":1,"at":1e300,"prev":""}`)).to.equal(undefined);
    for (const n of ["1e300", "0", "-1", "1.5"])
      expect(parseEntry(`{"n":${n},"at":1,"prev":""}`), n).to.equal(undefined);
  });

  it("continues after its last whole entry when a crash tore the last line, in a file 0600", async () => {
    const first = await open();
    first.record({ what: "one" });
    first.record({ what: "two" });
    await first.close();
    const [name = ""] = readdirSync(folder());
    const path = folder(name);
    expect(lstatSync(path).mode & 0o777).to.equal(0o600);
    writeFileSync(path, '{"n":3,"at":7,"pr', { flag: "a" });
    const again = await open();
    expect(again.head().n).to.equal(2);
    again.record({ what: "three" });
    await again.close();
    expect((await verdict()).damage).to.deep.equal([]);
    expect((await read()).map(({ text }) => (JSON.parse(text) as { what: string }).what)).to.deep.equal([
      "one",
      "two",
      "three",
    ]);
  });

  it("continues after a damaged line without hiding the damage", async () => {
    const first = await open();
    for (const what of ["one", "two", "three"]) first.record({ what });
    await first.close();
    const path = folder(readdirSync(folder())[0] ?? "");
    writeFileSync(path, readFileSync(path, "utf8").replace('"two"', '"too"'));
    const again = await open();
    again.record({ what: "four" });
    await again.close();
    expect((await verdict()).damage.map(({ what }) => what)).to.deep.equal([
      "entry 2 was changed, or entry 3 was written anew",
    ]);
  });

  it("S-23: follows no planted symbolic link", async () => {
    const victim = folder("victim");
    writeFileSync(victim, "");
    symlinkSync(victim, folder("000000000001.ndjson"));
    const failed = await open().then(
      () => undefined,
      (error: NodeJS.ErrnoException) => error.code,
    );
    expect(failed).to.equal("ELOOP");
  });

  it("reports once that the disk fails, writes the waiting entries later, and counts those it had no room for", async () => {
    // The folder is removed, so that the next file cannot be begun.
    const small = await openTrail({
      folder: folder("gone"),
      clock: () => 7,
      onTrouble: (text) => void troubles.push(text),
    });
    rmSync(folder("gone"), { recursive: true });
    const large = "x".repeat(300_000);
    for (let index = 0; index < 5; index += 1) small.record({ large });
    await until(() => troubles.length > 0);
    expect(troubles).to.have.length(1);
    expect(troubles[0]).to.contain("cannot be written");
    mkdirSync(folder("gone"));
    small.record({ what: "last" });
    await small.close();
    expect(troubles.at(-1)).to.contain("written again");
    const verifier = new Verifier();
    const entries = [];
    for await (const line of readTrail(folder("gone"))) entries.push(verifier.add(line));
    expect(verifier.verdict().damage).to.deep.equal([]);
    expect(entries.map((entry) => entry?.["what"] ?? entry?.["type"] ?? "large")).to.deep.equal(
      "large large large last audit.unrecorded".split(" "),
    );
    expect(entries.at(-1)?.["entries"]).to.equal(2);
  });

  it("orders the entries of several processes that write at the same time", async () => {
    const program = `import { appendEntry } from ${source};
for (let index = 0; index < 15; index += 1) appendEntry(${JSON.stringify(folder())}, 1, { pid: process.pid, index });`;
    await Promise.all(
      Array.from({ length: 4 }, () =>
        promisify(execFile)(process.execPath, ["--input-type=module", "-e", program], { cwd: import.meta.dirname }),
      ),
    );
    expect(await verdict()).to.deep.include({ first: 1, entries: 60, damage: [] });
    expect(readdirSync(folder()).filter((name) => name.startsWith("."))).to.deep.equal([]);
  });

  it("has an entry complete or not at all if the disk takes only a part of it", async () => {
    const program = `const { appendEntry } = await import(${source});
try { appendEntry(${JSON.stringify(folder())}, 1, { what: "x".repeat(9_000) }); } catch (error) { console.log(error.code); }`;
    // A file of this process takes at most 1 KiB or, in other shells, 512 bytes: write(2) writes so much, then fails.
    const limited = ["-c", 'ulimit -f 1 && exec "$@"', "sh", process.execPath, "--input-type=module", "-e", program];
    const { stdout } = await promisify(execFile)("sh", limited);
    expect([stdout, readdirSync(folder())]).to.deep.equal(["EFBIG\n", []]);
    const { n } = appendEntry(folder(), 2, { what: "small" });
    expect([n, readFileSync(folder("000000000001.ndjson"), "utf8").endsWith("\n")]).to.deep.equal([1, true]);
  });

  it("of one file per entry shows a truncated or deleted file", async () => {
    for (const what of ["one", "two", "three", "four"]) appendEntry(folder(), 1, { what });
    const { head } = await verdict();
    rmSync(folder("000000000002.ndjson"));
    expect((await verdict([head])).damage.map(({ what }) => what)).to.deep.equal(["entry 2 is missing"]);
    truncateSync(folder("000000000004.ndjson"), 10);
    appendEntry(folder(), 1, { what: "five" });
    expect((await verdict([head])).damage.map(({ what }) => what)).to.deep.equal([
      "entry 2 is missing",
      "entry 4 is missing",
    ]);
  });
});
