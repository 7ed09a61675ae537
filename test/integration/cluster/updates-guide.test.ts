import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { writeBundleFile } from "#cli/update/bundle-file.ts";
import { addController } from "#pki/contexts.ts";
import { writeRuntime } from "#support/bundles.ts";
import { codec, createTestCluster, eventually, passphrase } from "#support/cluster.ts";
import type { TestCluster } from "#support/cluster.ts";
import { areAllInStep, startControllers, type TestController } from "#support/controllers.ts";
import { TestProject } from "#support/kcore.ts";
import { startRolloutNodes } from "#support/rollout-nodes.ts";
import { fits, readGuides, wordsOf, type TranscriptStep } from "#support/transcripts.ts";

const page = join(import.meta.dirname, "../../../docs/updates.md");
/** As the page calls the three controllers. */
const shown = ["192.0.2.11", "192.0.2.12", "192.0.2.14"].map((host) => `${host}:9090`);

describe("the guides of docs/updates.md, command by command", function () {
  this.timeout(120_000);
  let cluster: TestCluster;
  let controllers: readonly TestController[];
  let stop: () => Promise<void>;
  let project: TestProject;
  let nodes: Awaited<ReturnType<typeof startRolloutNodes>>;

  before(async () => {
    cluster = await createTestCluster();
    ({ controllers, stop } = await startControllers(cluster, 3, { dcs: ["DC1", "DC1", "DC2"] }));
    for (const { endpoint } of controllers) await addController({ home: cluster.home, codec }, "lab", endpoint);
    project = new TestProject();
    writeFileSync(join(project.project, "passphrase"), `${passphrase}\n`, { mode: 0o600 });
    for (const version of ["0.4.0", "0.5.0"]) {
      const { bundle, file } = await writeRuntime(project.path, version);
      await writeBundleFile(join(project.project, `kcore-${version}-x86_64.bundle`), { bundle, file, start: 0 });
    }
    const dcs = ["DC1", "DC1", "DC2", "DC2"];
    nodes = await startRolloutNodes(
      cluster,
      controllers,
      dcs.map((dc, index) => ({ hostname: `n${index + 1}`, dc })),
    );
    await eventually(() => areAllInStep(controllers));
  });
  after(async () => {
    await nodes?.stop();
    await stop?.();
    await project?.remove();
    await cluster?.remove();
  });

  for (const { title, steps, files } of readGuides(page))
    it(title, async () => {
      for (const [name, text] of files) writeFileSync(join(project.project, name), text);
      for (const step of steps) await follow(step);
    });

  async function follow(step: TranscriptStep): Promise<void> {
    const service = /^systemctl (start|stop) kcore-controller$/.exec(step.command)?.[1];
    if (service === "stop") return controllers[0]?.stop();
    if (service === "start") return controllers[0]?.start();
    const [program, ...words] = wordsOf(step.command).map(toReal);
    expect(program, `docs/updates.md:${step.line}`).to.equal("kcore");
    const run = async () => {
      const { code, stdout, stderr } = await project.start(words, { KCORE_HOME: cluster.home }).ended;
      return { code, output: toShown(stderr + stdout) };
    };
    let { code, output } = await run();
    // Nodes need their time; a reader is not as fast.
    const isLook = words[2] === "get" && !words.includes("-w");
    for (let turn = 0; turn < 10 && isLook && !fits(output, step.output); turn++) ({ code, output } = await run());
    const message = `docs/updates.md:${step.line}: $ ${step.command}\n${output}instead of\n${step.output.join("\n")}\n`;
    expect(fits(output, step.output), message).to.equal(true);
    expect(code, message).to.equal(step.exitCode);
  }

  function toReal(word: string): string {
    const index = shown.findIndex((endpoint) => endpoint === word || endpoint === `${word}:9090`);
    return controllers[index]?.endpoint ?? word;
  }

  function toShown(text: string): string {
    return controllers.reduce((done, { endpoint }, index) => done.replaceAll(endpoint, shown[index] ?? ""), text);
  }
});
