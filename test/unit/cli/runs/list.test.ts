import { mkdir, writeFile } from "node:fs/promises";
import { expect } from "chai";
import { runFolder, type RunHeader } from "#engine/run/run-folder.ts";
import { buildProgram } from "#cli/program.ts";
import { complete } from "#cli/completion/candidates.ts";
import { findRun } from "#cli/records/known-run.ts";
import { drawRuns } from "#cli/runs/list-runs.ts";
import { codeOf, rejectionOf } from "#support/rejection.ts";
import { runRequest } from "#support/runs.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

const ids = ["20261121-061500-a1b2", "20261121-071500-c3d4", "20261122-071500-c3d4"];
const headerOf = (id: string, dryRun = false): RunHeader => {
  const request = { ...runRequest(), dryRun, command: "kcore orchestrate x n1" };
  return { version: 1, id, nonce: "0", who: "w@h", created: 0, attended: false, request };
};

describe("runs as they are listed and named", () => {
  const project = folderOfEachTest("list");
  beforeEach(async () => {
    for (const name of ["roster", "orchestrate"]) await mkdir(project(name));
    for (const id of ids) {
      const folder = runFolder(project(), id);
      await mkdir(folder.path, { recursive: true });
      await writeFile(folder.header, JSON.stringify(headerOf(id)));
    }
  });

  it("are listed with dry runs marked, ages, and coloured outcomes", () => {
    const summary = (state: string, dryRun: boolean) => ({
      folder: runFolder(project(), ids[0] ?? ""),
      header: headerOf(ids[0] ?? "", dryRun),
      state,
      isOver: state !== "running",
      started: 0,
      since: 0,
      milliseconds: 5000,
      nodes: ["n1"],
    });
    const table = drawRuns([summary("done", true), summary("failed", false)], 7_200_000, false).split("\n");
    expect(table[0]).to.match(/^ID +STATE +AGE +TIME/);
    expect(table[1]).to.match(/ done \(dry run\) +2h +5\.0 s/);
    expect(table[2]).to.match(/ failed +2h +5\.0 s/);
    const painted = drawRuns([summary("done", false), summary("failed", false)], 0, true);
    const colourOf = (word: string) =>
      painted.slice(painted.lastIndexOf("[", painted.indexOf(word)), painted.indexOf(word));
    expect(colourOf("done"))
      .to.match(/^\[[\d;]+m$/)
      .and.not.to.equal(colourOf("failed"));
  });

  it("are listed with an open question and the command that answers it", () => {
    const question = { id: "q1", kind: "passphrase", text: "Passphrase of the CA", secret: true } as const;
    const folder = runFolder(project(), ids[0] ?? "");
    const one = {
      folder,
      header: headerOf(ids[0] ?? ""),
      isOver: false,
      started: 0,
      since: 0,
      milliseconds: 5,
      nodes: [],
      state: "waiting",
      question,
    };
    expect(drawRuns([one], 0, false))
      .to.match(/ waiting +0s /)
      .and.to.contain(`${ids[0]} waits for you: Passphrase of the CA  Answer with kcore runs attach ${ids[0]}`);
  });

  it("are named by the last four digits of the id if these are unique", async () => {
    expect((await findRun(project(), "a1b2")).folder.id).to.equal(ids[0]);
    expect(await codeOf(findRun(project(), "c3d4"))).to.equal("RUN_UNKNOWN");
    expect(await codeOf(findRun(project(), "ffff"))).to.equal("RUN_UNKNOWN");
  });

  it("are not named by “last” if every recorded run is of another kind", async () => {
    const [problem] = (await rejectionOf(findRun(project(), "last", () => false))).problems;
    expect(problem?.message).to.equal("“last” can mean none of this project's recorded runs");
  });

  it("are completed by the last four digits, or by the whole id once it is begun", async () => {
    const before = process.cwd();
    process.chdir(project());
    try {
      const offered = async (...words: string[]) =>
        (await complete(await buildProgram(words), words)).candidates.map(({ value }) => value);
      expect(await offered("runs", "show", "")).to.deep.equal(["last", "c3d4", "c3d4", "a1b2"]);
      expect(await offered("runs", "attach", "a")).to.deep.equal(["a1b2"]);
      expect(await offered("runs", "diff", "last", "20261121")).to.deep.equal([ids[1], ids[0]]);
      expect(await offered("orchestrate", "show", "deploy_n")).to.deep.equal(["deploy_node"]);
    } finally {
      process.chdir(before);
    }
  });
});

describe("the help of an orchestration", () => {
  it("lists its parameters", async () => {
    const words = ["orchestrate", "deploy_node", "--help"];
    const program = await buildProgram(words);
    let help = "";
    const command = program.commands.find((one) => one.name() === "orchestrate");
    command?.configureOutput({ writeOut: (text) => (help += text) });
    await program.parseAsync(words, { from: "user" }).catch(() => undefined);
    expect(help)
      .to.contain("Parameters of deploy_node")
      .and.to.match(/^node_name +target +required/m);
  });
});
