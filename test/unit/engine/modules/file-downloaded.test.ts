import {
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { type Blob, blobOf } from "#engine/step/blob.ts";
import type { RemoteContent } from "#engine/step/remote.ts";
import { secret } from "#engine/step/secret.ts";
import { fileDownloaded } from "#engine/modules/file-downloaded.ts";
import { body, token } from "#support/download-server.ts";
import { serveDownloads, type DownloadServer } from "#support/serve-downloads.ts";
import { contextOf, runStepOn, stepOf, type StepRun } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";
import { makeTempDir, type TempDir } from "#support/temp-dir.ts";

const { sha256 } = blobOf(body);

describe("file.downloaded", () => {
  let folder: TempDir;
  let server: DownloadServer;
  const at = (...names: string[]): string => join(folder.path, ...names);
  beforeEach(async () => {
    folder = await makeTempDir("download");
    server = await serveDownloads(folder.path);
  });
  afterEach(async () => {
    server.stop();
    await folder.remove();
  });
  const run = (shell: string, path: string, args: object = {}, options: object = {}): Promise<StepRun> =>
    runStepOn(shell, stepOf(fileDownloaded, { path: at("it's here"), url: `${server.url}${path}`, sha256, ...args }), {
      stateDir: folder.path,
      ...options,
    });
  const asked = (): string[] => readFileSync(at("log"), "utf8").trimEnd().split("\n").filter(Boolean);
  /** By way of a bastion that has it. */
  const sent = (shell: string, args: object = {}, options: object = {}): Promise<StepRun> => {
    const given = { path: at("it's here"), url: "https://nowhere.invalid/a", sha256, via: "bastion", ...args };
    return runStepOn(shell, stepOf(fileDownloaded, given, contextOf({ remote: () => blobOf(body) })), {
      stateDir: folder.path,
      ...options,
    });
  };

  it("wants these bytes, and what of mode and owner is given", () => {
    const { want } = stepOf(fileDownloaded, { path: "/a", url: "https://a/b", sha256, mode: "0755" });
    expect(want).to.deep.equal({ kind: "file", content: `sha256:${sha256}`, mode: "0755" });
  });

  it("refuses what is no URL, no hash, or would be more than one header", () => {
    for (const args of [
      { url: "ftp://a/b" },
      { url: "https://u:p@a/b" },
      { sha256: "9F86" },
      { sha256: undefined },
      { via: "nobody" },
      { headers: { "A: b\r\nC": "d" } },
      { headers: { A: "b\nC: d" } },
      { headers: { A: secret("b\r\nC: d") } },
      { url: secret("https://a/\nheader = x") },
    ])
      expect(
        fileDownloaded.args.safeParse({ path: "/a", url: "https://a/b", sha256, ...args }).success,
        JSON.stringify(args),
      ).to.equal(false);
  });

  it("offers the content by way of the bastion, and rests on no program for it", () => {
    const given = { path: "/opt/tool", url: "https://a/b", sha256, headers: { A: secret("b") }, caFile: "/ca" };
    const remotes: RemoteContent[] = [];
    const remote = (content: RemoteContent): Blob => (remotes.push(content), blobOf(body));
    const step = stepOf(fileDownloaded, { ...given, via: "bastion" }, contextOf({ remote }));
    expect(remotes).to.deep.equal([
      { url: "https://a/b", sha256, headers: given.headers, caFile: "/ca", label: "tool" },
    ]);
    expect(step.offers?.map((blob) => blob.sha256)).to.deep.equal([sha256]);
    expect(step.want).to.deep.equal(stepOf(fileDownloaded, given).want);
    expect(JSON.stringify(step.reach)).not.to.contain("curl");
    stepOf(fileDownloaded, { ...given, via: "bastion" }, contextOf({ remote, sensitive: true }));
    stepOf(fileDownloaded, given, contextOf({ remote }));
    expect(remotes.map(({ label }) => label)).to.deep.equal(["tool", "contents"]);
  });

  for (const shell of shellsOf(import.meta.filename))
    describe(`on ${shell}`, () => {
      it("takes what the bastion sends, and asks for nothing where only the mode differs", async () => {
        const dry = await sent(shell, { mode: "0750" }, { dryRun: true });
        expect([dry.outcome, existsSync(at("it's here"))], JSON.stringify(dry)).to.deep.equal(["would-change", false]);
        const done = await sent(shell, { mode: "0750" });
        expect(done.outcome, JSON.stringify(done)).to.equal("changed");
        expect(readFileSync(at("it's here")).equals(body)).to.equal(true);
        expect((await sent(shell, { mode: "0750" })).outcome).to.equal("ok");
        const step = stepOf(
          fileDownloaded,
          { path: at("it's here"), url: "https://a/b", sha256, via: "bastion", mode: "0644" },
          contextOf({ remote: () => blobOf(body) }),
        );
        // Without the content it would be missed.
        const mode = await runStepOn(shell, { ...step, offers: [] }, { stateDir: folder.path });
        expect(mode.outcome, JSON.stringify(mode)).to.equal("changed");
        expect(statSync(at("it's here")).mode & 0o777).to.equal(0o644);
        writeFileSync(at("it's here"), "old");
        // 20: the runner asks for it.
        expect((await runStepOn(shell, { ...step, offers: [] }, { stateDir: folder.path })).status).to.equal(20);
        expect(readFileSync(at("it's here"), "utf8")).to.equal("old");
      });

      it("brings the file, whole and with its mode, and asks nobody for what is there", async () => {
        const args = { mode: "0750" };
        const dry = await run(shell, "/file", args, { dryRun: true });
        expect([dry.outcome, dry.have, existsSync(at("it's here"))], JSON.stringify(dry)).to.deep.equal([
          "would-change",
          { kind: "absent" },
          false,
        ]);
        const done = await run(shell, "/file", args);
        expect(done.outcome, JSON.stringify(done)).to.equal("changed");
        expect(readFileSync(at("it's here")).equals(body)).to.equal(true);
        expect(readdirSync(at("downloads"))).to.deep.equal([]);
        const before = asked().length;
        expect((await run(shell, "/file", args)).outcome).to.equal("ok");
        expect((await run(shell, "/file", { mode: "0644" })).outcome).to.equal("changed");
        expect([asked().length, statSync(at("it's here")).mode & 0o777]).to.deep.equal([before, 0o644]);
      });

      it("goes on where a cut left it", async () => {
        const cut = await run(shell, "/cut");
        expect([cut.problem?.code, existsSync(at("it's here"))], JSON.stringify(cut)).to.deep.equal([
          "DOWNLOAD_FAILED",
          false,
        ]);
        const half = statSync(at("downloads", sha256)).size;
        expect((await run(shell, "/cut")).outcome).to.equal("changed");
        expect([half > 0, asked().at(-1)]).to.deep.equal([true, `GET /cut bytes=${half}- -`]);
      });

      it("starts anew where what came does not fit, or the server knows no ranges", async () => {
        for (const [path, came] of [
          ["/file", "x".repeat(100)],
          ["/file", "x".repeat(body.length)],
          ["/plain", "x"],
        ] as const) {
          mkdirSync(at("downloads"), { recursive: true });
          writeFileSync(at("downloads", sha256), came);
          const done = await run(shell, path, { path: at(`${path}-${came.length}`.slice(1)) });
          expect(done.outcome, JSON.stringify(done)).to.equal("changed");
        }
      });

      it("refuses other bytes, names both hashes, and leaves what was there", async () => {
        writeFileSync(at("it's here"), "old");
        const { problem } = await run(shell, "/file", { sha256: blobOf("a").sha256 });
        expect([problem?.code, problem?.detail]).to.deep.equal([
          "DOWNLOAD_DIFFERS",
          `wanted ${blobOf("a").sha256}\nfound  ${sha256}`,
        ]);
        expect([readFileSync(at("it's here"), "utf8"), readdirSync(at("downloads"))]).to.deep.equal(["old", []]);
      });

      it("gives nobody what a link of his leads to, put there between look and change (S-6)", async () => {
        if (shell === "busybox sh") return; // its own applet comes first
        mkdirSync(at("home"));
        chownSync(at("home"), 1500, 1500);
        const path = at("home/file");
        writeFileSync(path, body, { mode: 0o600 });
        chownSync(path, 1500, 1500);
        writeFileSync(at("secret"), "secret", { mode: 0o600 });
        const sha256sum = `/usr/bin/sha256sum "$@"; [ -e ${at("done")} ] || { : >${at("done")}; ln -sf ${at("secret")} ${path}; }`;
        const done = await run(shell, "/file", { path, mode: "0644", owner: "1500" }, { bin: { sha256sum } });
        expect(readFileSync(path).equals(Buffer.from(body)), JSON.stringify(done)).to.equal(true);
      });

      it("says that there is none, in a dry run too, and that a folder stands in the way", async () => {
        for (const dryRun of [true, false]) {
          const { problem } = await run(shell, "/none", {}, { dryRun });
          expect([problem?.code, problem?.message.includes("404")], problem?.message).to.deep.equal([
            "DOWNLOAD_FAILED",
            true,
          ]);
        }
        expect((await run(shell, "/file", { path: folder.path })).problem?.code).to.equal("FILE_IN_THE_WAY");
      });

      it("gives secret headers to curl's stdin, and not to where it is sent on", async () => {
        const log = at("argv");
        const bin = { curl: `printf '%s\\n' "$*" >>${log}; exec /usr/bin/curl "$@"` };
        const args = { headers: { "X-Token": secret(token) } };
        expect((await run(shell, "/private", args, { bin })).outcome).to.equal("changed");
        expect((await run(shell, "/moved", { ...args, path: at("moved") }, { bin })).outcome).to.equal("changed");
        expect(asked().filter((line) => line.includes("/file"))).to.deep.equal(["GET /file - -"]);
        expect(readFileSync(log, "utf8")).not.to.contain("secret").and.not.to.contain("X-Token");
        const url = secret(`${server.url}/file`);
        expect((await run(shell, "/", { url, path: at("third") }, { bin })).outcome).to.equal("changed");
        expect(readFileSync(log, "utf8")).not.to.contain("/file");
      });
    });

  describe("without curl", () => {
    const only = (program: string): string => {
      for (const name of [
        "cat",
        "chmod",
        "chown",
        "dd",
        "find",
        "grep",
        "mkdir",
        "mktemp",
        "mv",
        "readlink",
        "rm",
        "rmdir",
        "sed",
        "sha256sum",
        "sleep",
        "stat",
        "sync",
      ])
        if (!existsSync(at("bin", name))) {
          mkdirSync(at("bin"), { recursive: true });
          symlinkSync(`/usr/bin/${name}`, at("bin", name));
        }
      if (program !== "") symlinkSync(program, at("bin/wget"));
      return at("bin");
    };
    for (const [name, program] of [
      ["GNU wget", "/usr/bin/wget"],
      ["BusyBox wget", "/bin/busybox"],
    ] as const)
      it(`${name} does it, goes on, and starts anew`, async () => {
        const env = { PATH: only(program) };
        const cut = await run("/bin/dash", "/cut", {}, { env });
        expect(cut.problem?.code, JSON.stringify(cut)).to.equal("DOWNLOAD_FAILED");
        expect((await run("/bin/dash", "/cut", {}, { env })).outcome).to.equal("changed");
        expect(asked().at(-1)).to.match(/^GET \/cut bytes=\d+-? -$/);
        writeFileSync(at("downloads", sha256), "x".repeat(body.length));
        const anew = await run("/bin/dash", "/file", { path: at("second") }, { env });
        expect(anew.outcome, JSON.stringify(anew)).to.equal("changed");
      });

    it("says what is missing, in a dry run too", async () => {
      const env = { PATH: only("/bin/busybox") };
      const { problem } = await run("/bin/dash", "/private", { headers: { A: "b" } }, { env, dryRun: true });
      expect([problem?.code, problem?.message.includes("needs curl on the node")]).to.deep.equal([
        "TOOL_MISSING",
        true,
      ]);
    });
  });
});
