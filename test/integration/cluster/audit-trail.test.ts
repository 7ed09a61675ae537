import { randomUUID } from "node:crypto";
import { appendFileSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { ClusterSite } from "#support/cluster-site.ts";
import { refusalCodeOf, type TestController } from "#support/controllers.ts";
import type { TestProject, CommandEnd } from "#support/kcore.ts";

interface Finding {
  readonly trail: string;
  readonly state: string;
  readonly entries: number;
  readonly head: { readonly n: number; readonly hash: string };
  readonly damage: readonly { readonly file: string; readonly line: number; readonly what: string }[];
}

describe("kcore audit (S-27)", () => {
  let site: ClusterSite;
  let project: TestProject;
  const at = (index: number): TestController => site.at(index);
  const kcore = (...words: readonly string[]): Promise<CommandEnd> => site.call(...words);
  const verify = async (...words: readonly string[]): Promise<{ code: number | null; found: readonly Finding[] }> => {
    const { code, stdout, stderr } = await kcore("audit", "verify", ...words, "-o", "json");
    expect(stderr).to.equal("");
    return { code, found: JSON.parse(stdout) as Finding[] };
  };
  /** The findings after a change of a file, which is restored afterwards. */
  const damageAfter = async (file: string, tamper: (text: string) => void, ...words: readonly string[]) => {
    const before = readFileSync(file);
    tamper(before.toString());
    try {
      const { code, found } = await verify(...words);
      return [code, ...found.flatMap(({ damage }) => damage.map(({ what }) => what))];
    } finally {
      writeFileSync(file, before);
    }
  };

  before(async () => {
    const files = {
      "states/greet.yaml": `steps:\n  - id: greeting\n    file.managed: { path: "${"{{vars.home}}"}/greeting", content: hello }\n`,
    };
    site = await ClusterSite.open(2, { files });
    ({ project } = site);
  });
  after(() => site?.stop());

  it("verifies whole trails, and shows who did what in order of time", async () => {
    await at(0).operator.call("putObject", { value: { size: 1 } }, { id: "Volume/v1" });
    await refusalCodeOf(at(1).operator.call("removeObject", {}, { id: "Volume/v1" }));
    expect((await kcore("exec", "--lock", "--on", "here", "--", "true")).code).to.equal(0);
    const { code, found } = await verify();
    expect(found.map(({ state }) => state)).to.deep.equal(["whole", "whole", "whole"]);
    expect(code).to.equal(0);
    expect(found[0]?.trail).to.equal("runs");
    const shown = JSON.parse((await kcore("audit", "show", "-o", "json")).stdout) as Record<string, unknown>[];
    expect(shown.filter(({ method }) => method === "putObject")[0]).to.deep.include({
      by: "operator ann",
      target: "Volume/v1",
      status: 200,
    });
    const ended = shown.find(({ type }) => type === "run.finished");
    expect(ended).to.deep.include({ outcome: "done", exitCode: 0, nodes: { here: { outcome: "done", changed: 1 } } });
    expect(shown.map(({ at: time }) => time)).to.deep.equal(
      shown.map(({ at: time }) => Number(time)).toSorted((a, b) => a - b),
    );
    const { stdout } = await kcore("audit", "show", "--runs", "--limit", "1");
    expect(stdout).to.match(/^TIME +TRAIL +WHO +WHAT +ABOUT +OUTCOME\n\S+ +runs +- +run\.finished +\S+ +done\n$/);
  });

  it("does not compare the controllers' trails with --head of the runs", async () => {
    const [runs] = (await verify("--runs")).found;
    const head = `${runs?.head.n}:${runs?.head.hash}`;
    const { code, found } = await verify("--controllers", "--head", head);
    expect([code, found.map(({ state }) => state)]).to.deep.equal([0, ["whole", "whole", "whole"]]);
  });

  it("verifies a controller's trail across a restart", async () => {
    await at(0).stop();
    await at(0).start();
    await at(0).operator.call("putConfig", { value: {} }, { id: "group" });
    const { code, found } = await verify("--controllers");
    expect([code, found.map(({ state }) => state)]).to.deep.equal([0, ["whole", "whole"]]);
  });

  it("detects a record or header that was changed, extended or deleted, and accepts a pruned one", async () => {
    const runs = join(project.project, ".kcore/runs");
    const [id = ""] = readdirSync(runs);
    const [record, header] = ["events.ndjson", "run.json"].map((name) => join(runs, id, name)) as [string, string];
    for (const [file, tamper, damage] of [
      [
        record,
        (text: string) => writeFileSync(record, text.replace('"done"', '"fail"')),
        `the record of run ${id} was changed: ${record}`,
      ],
      [record, () => rmSync(record), "although it was not pruned"],
      [record, () => appendFileSync(record, "{}\n"), `the record of run ${id} goes on behind its end: ${record}`],
      [
        header,
        (text: string) => writeFileSync(header, text.replace(/"who": *"[^"]*"/, '"who": "mallory"')),
        "the header of run",
      ],
    ] as const)
      expect((await damageAfter(file, tamper, "--runs"))[1]).to.contain(damage);
    expect((await kcore("runs", "prune", "--keep", "0")).stdout).to.equal("1 removed\n");
    expect((await verify("--runs")).code).to.equal(0);
    const [last] = JSON.parse((await kcore("audit", "show", "--runs", "--limit", "1", "-o", "json")).stdout) as {
      type: string;
      runs: string[];
    }[];
    expect(last).to.deep.include({ type: "runs.pruned", runs: [id] });
  });

  it("finds the runs' trail whole after a resume that was refused", async () => {
    project.write({ "project/states/bad.yaml": "steps:\n  - id: a\n    command.run: { cmd: 'false' }\n" });
    const failed = await kcore("state", "apply", "bad", "--on", "here", "-o", "json");
    expect(failed.code).to.equal(1);
    const id = readdirSync(join(project.project, ".kcore/runs")).toSorted().at(-1) ?? "";
    const state = join(project.project, "states/bad.yaml");
    const text = readFileSync(state);
    writeFileSync(state, "steps: 7\n");
    expect((await kcore("runs", "resume", id)).code).to.equal(2);
    writeFileSync(state, text);
    expect((await verify("--runs")).found[0]?.damage).to.deep.equal([]);
    const again = await kcore("runs", "resume", id);
    expect(again.code, again.stderr).to.equal(1);
    expect((await verify("--runs")).found[0]?.damage).to.deep.equal([]);
  });

  it("shows the trails that can be read, and reports the others as errors", async () => {
    await at(1).stop();
    try {
      const { code, found } = await verify("--controllers");
      expect(code).to.equal(1);
      expect(found.map(({ state }) => state).toSorted()).to.deep.equal(["unreadable", "whole"]);
      const { stdout, stderr } = await kcore("audit", "show", "--controllers", "-o", "json");
      expect((JSON.parse(stdout) as unknown[]).length).to.be.greaterThan(0);
      expect(stderr).to.contain(at(1).endpoint);
    } finally {
      await at(1).start();
    }
  });

  it("lists the keys that a controller wrote last, without their values", async () => {
    await at(0).operator.call("putObject", { value: { size: 7 } }, { id: "Volume/written" });
    const { stdout, stderr } = await kcore("audit", "show", "--origin", at(0).id, "-o", "json");
    const writes = JSON.parse(stdout) as { readonly key: string; readonly isDeleted: boolean }[];
    expect(
      writes.find(({ key }) => key === "object/Volume/written"),
      stderr,
    ).to.include({ isDeleted: false });
    expect(stdout).not.to.contain("size");
    expect((await kcore("audit", "show", "--origin", randomUUID())).stdout).to.match(/^no key was last written by/);
  });
});
