import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { fits, readGuides, wordsOf, type TranscriptStep } from "#support/transcripts.ts";
import { eventually } from "#support/cluster.ts";
import { UpdateSite } from "#support/update-site.ts";

const page = join(import.meta.dirname, "../../../docs/updates.md");
/** The page's addresses of the three controllers. */
const shown = ["192.0.2.11", "192.0.2.12", "192.0.2.14"].map((host) => `${host}:9090`);

describe("the guides of docs/updates.md, command by command", () => {
  let site: UpdateSite;

  before(async () => {
    site = await UpdateSite.start({
      versions: ["0.4.0", "0.5.0"],
      bundleName: (version) => `kcore-${version}-x86_64.bundle`,
      nodes: ["DC1", "DC1", "DC2", "DC2"].map((dc, index) => ({ hostname: `n${index + 1}`, dc })),
    });
  });
  after(() => site?.stop());

  for (const { title, steps, files } of readGuides(page))
    it(title, async () => {
      for (const [name, text] of files) writeFileSync(join(site.project.project, name), text);
      for (const step of steps) await follow(step);
    });

  async function follow(step: TranscriptStep): Promise<void> {
    const service = /^systemctl (start|stop) kcore-controller$/.exec(step.command)?.[1];
    if (service === "stop") return site.controllers[0]?.stop();
    if (service === "start") return site.controllers[0]?.start();
    const [program, ...words] = wordsOf(step.command).map(toReal);
    expect(program, `docs/updates.md:${step.line}`).to.equal("kcore");
    const run = async () => {
      const { code, stdout, stderr } = await site.call(...words);
      return { code, output: toShown(stderr + stdout) };
    };
    let { code, output } = await run();
    // Nodes need a moment; a reader of the page is slower.
    const isQuery = words[2] === "get" && !words.includes("-w");
    const isAsOnPage = async (): Promise<boolean> =>
      fits(output, step.output) || (({ code, output } = await run()), false);
    if (isQuery) await eventually(isAsOnPage).catch(() => undefined);
    const message = `docs/updates.md:${step.line}: $ ${step.command}\n${output}instead of\n${step.output.join("\n")}\n`;
    expect(fits(output, step.output), message).to.equal(true);
    expect(code, message).to.equal(step.exitCode);
  }

  function toReal(word: string): string {
    const index = shown.findIndex((endpoint) => endpoint === word || endpoint === `${word}:9090`);
    return site.controllers[index]?.endpoint ?? word;
  }

  function toShown(text: string): string {
    return site.controllers.reduce((done, { endpoint }, index) => done.replaceAll(endpoint, shown[index] ?? ""), text);
  }
});
