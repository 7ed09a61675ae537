import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { packageRepository } from "#engine/modules/package-repository.ts";
import { contextOf, problemsOf, runStepOn, stepOf, type StepRun } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";
import { makeTempDir, type TempDir } from "#support/temp-dir.ts";

/** A flat repository without packages, signed with key.asc. */
const fixtures = join(import.meta.dirname, "../../../fixtures/repository");
const [key, other] = ["key.asc", "other.asc"].map((name) => readFileSync(join(fixtures, name), "utf8")) as [
  string,
  string,
];
const fingerprint = "C92C8DA47CCE6F7767C2F2B67102A0D104A5A332";
const there = { name: "example", uris: "https://a.example/debian", suites: "bookworm", components: "main" };

describe("package.repository", () => {
  it("writes a source of deb822 that believes this key alone", () => {
    const step = stepOf(packageRepository, { ...there, key, architectures: ["amd64", "arm64"], suites: ["a", "b"] });
    expect(step.shown).to.equal(`Types: deb
URIs: https://a.example/debian
Suites: a b
Components: main
Architectures: amd64 arm64
Signed-By: /etc/apt/keyrings/example.asc
`);
    expect(Object.keys(step.want)).to.deep.equal(
      ["source", "key"].flatMap((name) => [name, `${name} mode`, `${name} owner`]),
    );
    const named = stepOf(packageRepository, { ...there, keyring: "/usr/share/keyrings/a.gpg" });
    expect(named.shown).to.contain("Signed-By: /usr/share/keyrings/a.gpg\n");
    expect(stepOf(packageRepository, { ...there, trusted: true }).shown).to.contain("Trusted: yes\n");
  });

  it("refuses a key that is none, or that has another fingerprint, before any node is asked", async () => {
    const codes = async (args: object): Promise<readonly string[]> =>
      (
        await problemsOf(() => stepOf(packageRepository, { ...there, ...args }, contextOf({ files: { k: other } })))
      ).map(({ code }) => code);
    expect(await codes({ key: "a" })).to.deep.equal(["REPOSITORY_KEY_INVALID"]);
    expect(await codes({ key: other, fingerprint })).to.deep.equal(["REPOSITORY_KEY_INVALID"]);
    expect(await codes({ source: "k", fingerprint: [fingerprint] })).to.deep.equal(["REPOSITORY_KEY_INVALID"]);
    stepOf(packageRepository, { ...there, key: key.replaceAll("\n", "\r\n"), fingerprint: fingerprint.toLowerCase() });
  });

  it("refuses what apt would read otherwise, and a repository without a key", () => {
    for (const args of [
      { ...there },
      { ...there, key, trusted: true },
      { ...there, key, name: "a b" },
      { ...there, key, name: "../a" },
      { ...there, key, uris: "https://a b" },
      { ...there, key, uris: "https://a\nTrusted: yes" },
      { ...there, key, suites: "./" },
      { ...there, key, components: undefined },
      { ...there, key, uris: undefined },
      { ...there, key, fingerprint: "DEADBEEF" },
      { ...there, keyring: "/k", fingerprint },
      { ...there, key, state: "absent" },
    ])
      expect(packageRepository.args.safeParse(args).success, JSON.stringify(args)).to.equal(false);
  });

  for (const shell of shellsOf(import.meta.filename))
    describe(`on ${shell}`, () => {
      let folder: TempDir;
      beforeEach(async () => {
        folder = await makeTempDir("apt");
        for (const made of ["etc/sources.list.d", "etc/keyrings", "lib/lists/partial", "cache/archives/partial"])
          mkdirSync(join(folder.path, made), { recursive: true });
      });
      afterEach(() => folder.remove());
      const at = (...path: string[]): string => join(folder.path, ...path);
      // apt's own user reads the repository: a place of its own, not one that only root may enter.
      const on = (program: string): string =>
        `unshare -m sh -c 'mount -t tmpfs none /srv && cp -r ${fixtures} /srv/r && chmod -R a+rX /srv/r && mount --bind ${at("etc")} /etc/apt && mount --bind ${at("lib")} /var/lib/apt && mount --bind ${at("cache")} /var/cache/apt && exec "$0" "$@"' ${program}`;
      const args = { name: "example", uris: "file:/srv/r", suites: "./", key };
      const run = (more: object = {}, options: object = {}): Promise<StepRun> =>
        runStepOn(on(shell), stepOf(packageRepository, { ...args, ...more }), options);

      it("fetches and verifies the lists, and is in order then", async () => {
        writeFileSync(at("etc/sources.list.d/others.list"), "deb [trusted=yes] http://127.0.0.1:1/ ./\n");
        writeFileSync(at("lib/lists/127.0.0.1:1_._Packages"), "");
        const dry = await run({}, { dryRun: true });
        expect([dry.outcome, dry.have], JSON.stringify(dry)).to.deep.equal([
          "would-change",
          { source: "absent", key: "absent" },
        ]);
        expect(readdirSync(at("etc/keyrings"))).to.deep.equal([]);
        const done = await run();
        expect(done.outcome, JSON.stringify(done)).to.equal("changed");
        expect(readdirSync(at("lib/lists")).filter((name) => /srv|127/.test(name))).to.deep.equal([
          "127.0.0.1:1_._Packages",
          "_srv_r_._InRelease",
        ]);
        expect((await run()).outcome).to.equal("ok");
        writeFileSync(at("etc/keyrings/example.asc"), other);
        const drift = await run();
        expect([drift.outcome, drift.have["key"] === drift.now["key"]]).to.deep.equal(["changed", false]);
      });

      it("refuses what is signed with another key, or is not there, and puts back what was", async () => {
        const wrong = await run({ key: other });
        expect([wrong.problem?.code, wrong.problem?.detail], JSON.stringify(wrong)).to.satisfy(
          ([code, detail]: string[]) => code === "REPOSITORY_UNUSABLE" && detail?.includes("NO_PUBKEY") === true,
        );
        expect([readdirSync(at("etc/sources.list.d")), readdirSync(at("etc/keyrings"))]).to.deep.equal([[], []]);
        await run();
        const before = readFileSync(at("etc/sources.list.d/example.sources"), "utf8");
        expect((await run({ key: other, uris: "file:/srv/none" })).problem?.code).to.equal("REPOSITORY_UNUSABLE");
        expect(readFileSync(at("etc/sources.list.d/example.sources"), "utf8")).to.equal(before);
        expect(readFileSync(at("etc/keyrings/example.asc"), "utf8")).to.equal(key);
      });

      it("refuses, in a dry run too, a repository that another source has with another key: apt would read none", async () => {
        writeFileSync(at("etc/sources.list.d/old.list"), "deb [signed-by=/etc/apt/keyrings/old.asc] file:/srv/r ./\n");
        const { problem } = await run({}, { dryRun: true });
        expect([problem?.code, problem?.detail?.includes("Signed-By")]).to.deep.equal(["REPOSITORY_UNUSABLE", true]);
      });

      it("takes one without a signature that is believed all the same, when apt finds its lists in the end", async () => {
        // Else apt says “Ign” of what it asks for in vain, as long as there are translations to come.
        writeFileSync(at("etc/apt.conf"), 'Acquire::Languages "none";\n');
        const { key: _, ...unsigned } = { ...args, uris: "file:/srv/plain", trusted: true };
        const step = stepOf(packageRepository, unsigned);
        const done = await runStepOn(on(`sh -c 'mkdir /srv/plain && : >/srv/plain/Packages && exec ${shell}'`), step);

        expect(done.outcome, JSON.stringify(done)).to.equal("changed");
        const none = await runStepOn(
          on(shell),
          stepOf(packageRepository, { ...unsigned, name: "none", uris: "file:/srv/none" }),
        );
        expect(none.problem?.code).to.equal("REPOSITORY_UNUSABLE");
      });

      it("takes it away with its key", async () => {
        await run();
        const gone = await runStepOn(on(shell), stepOf(packageRepository, { name: "example", state: "absent" }));
        expect(gone.outcome, JSON.stringify(gone)).to.equal("changed");
        expect(
          existsSync(at("etc/keyrings/example.asc")) || existsSync(at("etc/sources.list.d/example.sources")),
        ).to.equal(false);
        rmSync(at("etc/keyrings"), { recursive: true });
        expect(
          (await runStepOn(on(shell), stepOf(packageRepository, { name: "example", state: "absent" }))).outcome,
        ).to.equal("ok");
      });
    });

  it("says what does it on a node without apt", async () => {
    const { problem } = await runStepOn("/bin/dash", stepOf(packageRepository, { ...there, key }), {
      env: { PATH: "/nonexistent" },
    });
    expect(problem?.code).to.equal("TOOL_MISSING");
  });
});
