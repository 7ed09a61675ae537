import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { ClusterSite } from "#support/cluster-site.ts";
import { eventually } from "#support/cluster.ts";
import { areAllInStep } from "#support/controllers.ts";
import type { TestController } from "#support/controllers.ts";
import type { TestProject } from "#support/kcore.ts";
import { fits, readGuides, wordsOf, type TranscriptStep } from "#support/transcripts.ts";

const page = join(import.meta.dirname, "../../../docs/day-2.md");
/** The page's addresses of the three controllers. */
const shown = ["192.0.2.11:9090", "192.0.2.12:9090", "192.0.2.14:9090"];

describe("the guides of docs/day-2.md, command by command", () => {
  let site: ClusterSite;
  let controllers: readonly TestController[];
  let project: TestProject;
  const at = (index: number): TestController => site.at(index);
  const operator = () => at(0).operator;

  before(async () => {
    const config = () => ({ requireManualApproval: true });
    site = await ClusterSite.open(3, { dcs: ["DC1", "DC1", "DC2"], config });
    ({ controllers, project } = site);
    await register("n1", "192.0.2.21", { labels: { tier: "ssd" } });
    await register("n2", "192.0.2.22");
    await eventually(() => areAllInStep(controllers));
  });
  after(() => site?.stop());

  async function register(name: string, address: string, changes: object = {}, isApproved = true): Promise<string> {
    const { id } = await site.register(name, { address, ...changes });
    if (isApproved) await operator().call("approveNode", {}, { id });
    return id;
  }

  /** Preparations of each guide. */
  const preparations: Readonly<Record<string, () => Promise<Readonly<Record<string, string>>>>> = {
    "Approve a node": async () => {
      await register("n3", "192.0.2.23", {}, false);
      return {};
    },
    "Settle a conflict": async () => {
      const { nodes } = await operator().call("listNodes", {});
      const id = nodes.find(({ hostname }) => hostname === "n1")?.id ?? "";
      // A restarted controller takes no writes until another one has admitted it, so two restart without the third.
      await at(0).stop();
      await at(2).stop();
      await at(1).operator.call("setLabels", { set: { side: "b" } }, { id });
      await at(1).stop();
      await at(2).start();
      await at(0).start();
      const write = () => operator().call("setLabels", { set: { side: "a" } }, { id });
      await eventually(() =>
        write().then(
          () => true,
          () => false,
        ),
      );
      await at(1).start();
      await eventually(() => areAllInStep(controllers));
      const found = await eventually(async () => (await operator().call("listConflicts", {})).conflicts[0]);
      return { CONFLICT: found.id };
    },
  };

  for (const { title, steps, needs, files } of readGuides(page))
    if (needs === "")
      it(title, async () => {
        for (const [name, text] of files) writeFileSync(join(project.project, name), text);
        const words = (await preparations[title]?.()) ?? {};
        for (const step of steps) await follow(step, words);
      });

  async function follow(step: TranscriptStep, given: Readonly<Record<string, string>>): Promise<void> {
    const service = /^systemctl (start|stop) kcore-controller$/.exec(step.command)?.[1];
    if (service === "stop") return at(0).stop();
    if (service === "start") {
      await at(0).start();
      await eventually(() => areAllInStep(controllers));
      return;
    }
    const [program, ...words] = wordsOf(step.command).map((word) => toReal(given[word] ?? word));
    expect(program, `docs/day-2.md:${step.line}`).to.equal("kcore");
    const onMachine = words[0] === "controller" && ["restore", "repair", "join"].includes(words[1] ?? "");
    const more = onMachine ? ["--config", join(at(0).dbPath, "../controller.yaml")] : [];
    // A command's write reaches the other controllers in milliseconds; a reader of the page is slower.
    const areWritesReplicated = async () => (await Promise.all(controllers.map(isInStepOrDown))).every(Boolean);
    // A controller that the guide stopped prevents this state, so that the wait is short.
    for (let turn = 0; turn < 100 && !(await areWritesReplicated()); turn++) await sleep(100);
    const run = async () => {
      const { code, stdout, stderr } = await site.call(...words, ...more);
      return { code, output: toShown(stderr + stdout) };
    };
    let { code, output } = await run();
    // A restarted controller needs a moment to find all others ready.
    const isAsOnPage = async (): Promise<boolean> =>
      code === step.exitCode || (({ code, output } = await run()), false);
    if (words[0] === "health") await eventually(isAsOnPage).catch(() => undefined);
    const message = `docs/day-2.md:${step.line}: $ ${step.command}\n${output}instead of\n${step.output.join("\n")}\n`;
    expect(fits(output, step.output), message).to.equal(true);
    expect(code, message).to.equal(step.exitCode);
  }

  async function isInStepOrDown({ operator: client }: TestController): Promise<boolean> {
    try {
      return (await client.call("ready", {})).peers.every(({ inStep }) => inStep);
    } catch {
      return true;
    }
  }

  function toReal(word: string): string {
    const index = shown.findIndex((endpoint) => endpoint === word || endpoint === `${word}:9090`);
    return index < 0 ? word.replace("192.0.2.99", "127.0.0.99") : at(index).endpoint;
  }

  function toShown(text: string): string {
    return controllers
      .reduce((done, { endpoint }, index) => done.replaceAll(endpoint, shown[index] ?? ""), text)
      .replaceAll("127.0.0.99", "192.0.2.99");
  }
});
