import { expect } from "chai";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { blobOf } from "#engine/step/blob.ts";
import { body, large } from "#support/download-server.ts";
import { TestProject, type CommandEnd } from "#support/kcore.ts";
import { freePort } from "#support/ports.ts";
import { serveDownloads, type DownloadServer } from "#support/serve-downloads.ts";
import type { SshServer } from "#support/ssh-server.ts";
import { startSshd } from "#support/sshd.ts";

const { sha256 } = blobOf(body);
const names = ["n1", "n2"] as const;

describe("file.downloaded by way of the bastion", () => {
  let nodes: SshServer[];
  let server: DownloadServer;
  let project: TestProject;
  before(async () => {
    nodes = await Promise.all(names.map(() => startSshd()));
    project = new TestProject({
      "roster/far.yaml": `nodes:\n${nodes
        .map(
          ({ port, identityFile, hostKey, folder }, index) => `  ${names[index]}:
    { address: 127.0.0.1, port: ${port}, identityFile: ${identityFile}, hostKeys: [${hostKey}], stateDir: ${folder}/state, vars: { at: ${folder} } }
`,
        )
        .join("")}`,
    });
    server = await serveDownloads(project.path);
  });
  after(async () => {
    server?.stop();
    await project?.remove();
    for (const node of nodes ?? []) await node.stop();
  });
  beforeEach(() => {
    rmSync(cache(), { recursive: true, force: true });
    for (const index of names.keys()) rmSync(file(index), { force: true });
    server.asked();
  });

  const cache = (): string => join(project.path, "home/cache/downloads");
  const file = (index: number): string => join((nodes[index] as SshServer).folder, "tool");
  const isThere = (index: number): boolean => existsSync(file(index)) && readFileSync(file(index)).equals(body);
  const kept = (): string[] => (existsSync(cache()) ? readdirSync(cache()) : []);
  /** Contents left in the nodes' state folders. */
  const left = (): string[] =>
    nodes.flatMap(({ folder }) =>
      readdirSync(join(folder, "state"), { recursive: true, encoding: "utf8" }).filter((name) => /blobs/.test(name)),
    );
  function writeState(args: string, { wanted = sha256, more = "" } = {}): void {
    project.write({
      "project/states/tool.yaml": `steps:
  - id: tool
    file.downloaded: { path: "{{node.vars.at}}/tool", via: bastion, sha256: ${wanted}, ${args} }
${more}`,
    });
  }
  const apply = (...words: readonly string[]): Promise<CommandEnd> =>
    project.kcore("state", "apply", "tool", "--on", "n1,n2", ...words);
  /** Applies the state to both nodes, and expects success with this number of changed steps. */
  async function expectChanged(changed: number, ...words: readonly string[]): Promise<void> {
    const { code, stdout, stderr } = await apply(...words);
    expect([code, /^Steps: .*$/m.exec(stdout)?.[0]], stdout + stderr).to.deep.equal([
      0,
      `Steps: 2 succeeded (changed=${changed}), 0 failed`,
    ]);
  }

  it("fetches once for two nodes, fetches nothing in a dry run or when the file is in place, and changes nothing the second time", async () => {
    writeState(`url: "${server.url}/away", mode: "0750"`);
    const dry = await apply("--dry-run", "--fail-on-change");
    expect([dry.code, server.asked(), kept()], dry.stdout).to.deep.equal([4, [], []]);
    await expectChanged(2);
    expect(server.asked()).to.deep.equal(["GET /away - -", "GET /file - -"]);
    expect([isThere(0), isThere(1), kept(), left()]).to.deep.equal([true, true, [sha256], []]);
    rmSync(cache(), { recursive: true });
    await expectChanged(0);
    writeState(`url: "${server.url}/away", mode: "0700"`);
    await expectChanged(2);
    expect([server.asked(), kept()]).to.deep.equal([[], []]);
    writeFileSync(file(1), "drifted");
    await expectChanged(1, "--feed", "nodes");
    expect([server.asked().length, isThere(1)]).to.deep.equal([2, true]);
  });

  it("is fetched once, and sent once by the bastion, when nodes pass contents to each other", async () => {
    writeState(`url: "${server.url}/large"`, { wanted: blobOf(large).sha256 });
    const { code, stdout } = await apply("--feed", "nodes", "-o", "json");
    expect(code, stdout).to.equal(0);
    expect(server.asked()).to.deep.equal(["GET /large - -"]);
    expect(names.map((_, index) => readFileSync(file(index)).equals(large))).to.deep.equal([true, true]);
    const sent = stdout
      .split("\n")
      .flatMap((line) => (line.includes('"node.sent"') ? [JSON.parse(line) as { from?: string; bytes: number }] : []));
    expect(sent.map(({ bytes }) => bytes)).to.deep.equal([large.length, large.length]);
    expect(sent.filter(({ from }) => from === undefined)).to.have.length(1);
  });

  it("reaches a node whose connection breaks during the download", async () => {
    writeState(`url: "${server.url}/slow"`);
    const { ended } = project.start(["state", "apply", "tool", "--on", "n1,n2", "--verbose"]);
    while (kept().length === 0) await new Promise((resolve) => setTimeout(resolve, 20));
    expect(await nodes[0]?.dropSessions()).to.be.greaterThan(0);
    const { code, stdout, stderr } = await ended;
    expect([code, isThere(0), isThere(1)], stdout + stderr).to.deep.equal([0, true, true]);
    expect(stdout).to.contain("waiting: for tool, which the bastion fetches").and.contain("connection lost");
    expect(server.asked()).to.deep.equal(["GET /slow - -"]);
  });

  it("fails with a hint when the URL cannot be fetched, and runs the step that reacts to the failure", async () => {
    const answer = `  - id: answer\n    onFailure: [tool]\n    file.managed: { path: "{{node.vars.at}}/answer", content: a }\n`;
    writeState(`url: "http://127.0.0.1:${await freePort()}/file"`, { more: answer });
    const { code, stdout, stderr } = await apply();
    expect(code, stdout + stderr).to.equal(1);
    expect(stdout + stderr)
      .to.contain("DOWNLOAD_FAILED")
      .and.contain("ECONNREFUSED")
      .and.contain("hint: look whether this machine reaches it, and its proxies");
    expect(nodes.map(({ folder }) => existsSync(join(folder, "answer")))).to.deep.equal([true, true]);
  });

  it("stops at Ctrl-C during the download, and leaves no partial file", async () => {
    writeState(`url: "${server.url}/half"`);
    const { child, ended } = project.start(["state", "apply", "tool", "--on", "n1,n2"]);
    while (kept().length === 0) await new Promise((resolve) => setTimeout(resolve, 20));
    child.kill("SIGINT");
    const { code, stdout, stderr } = await ended;
    expect(code, stdout + stderr).to.equal(130);
    expect([kept(), left(), isThere(0), isThere(1)]).to.deep.equal([[], [], false, false]);
    expect(stdout + stderr).not.to.contain("INTERNAL");
    writeState(`url: "${server.url}/file"`);
    await expectChanged(2);
  });
});
