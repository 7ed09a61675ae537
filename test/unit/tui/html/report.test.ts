import { createHash } from "node:crypto";
import { gunzipSync } from "node:zlib";
import { expect } from "chai";
import type { RunEvent } from "#engine/events/event.ts";
import { reduceEvents } from "#engine/events/reduce.ts";
import { drawReport, type ReportPageOptions } from "#tui/html/report.ts";
import { recordedRun } from "#support/recorded-runs.ts";
import { wideRun } from "#support/wide-run.ts";

const draw = (events: readonly RunEvent[], options?: ReportPageOptions) => drawReport(reduceEvents(events), options);

describe("The HTML report", () => {
  it("has orchestration, operator, time, revision and outcome", () => {
    const page = draw(recordedRun("failed"));
    for (const text of [
      "deploy_node",
      "ops@bastion",
      "3f2a91c0ffee",
      "kcore orchestrate deploy_node n1,n2",
      "2026-11-21",
    ])
      expect(page).to.include(text);
    expect(page).to.match(/class="verdict failed"/);
  });

  it("has the first cause of each failure with place, source line, hint and output", () => {
    const page = draw(recordedRun("failed"), { sourceLine: ({ line }) => `  line ${line} of the file` });
    const section = page.slice(page.indexOf("What went wrong"), page.indexOf(`id="timeline"`));
    for (const text of [
      "install tool",
      "STEP_FAILED",
      "states/disks.yaml:2:5",
      "line 2</mark>",
      "Unable to locate package nope",
      "HOST_UNREACHABLE",
    ])
      expect(section.replace("<mark>", "")).to.include(text);
    expect(section).not.to.include("after it");
  });

  it("has no source line of a problem with `conceal`", () => {
    const events = recordedRun("failed").map((event) =>
      event.type === "step.finished" && event.problem
        ? { ...event, problem: { ...event.problem, conceal: true as const } }
        : event,
    );
    expect(draw(events, { sourceLine: () => "password: hunter2" })).not.to.include("hunter2");
  });

  it("groups nodes that failed the same way", () => {
    const page = draw(wideRun({ nodes: 6, steps: 6, failEvery: 2 }));
    expect(page.split("<article").length - 1).to.equal(1);
    expect(page).to.include("3 nodes failed the same way");
  });

  it("allows only its own style and script by hash, and no network", () => {
    const page = draw(recordedRun("done"));
    const policy = (/Content-Security-Policy" content="([^"]*)"/.exec(page)?.[1] ?? "").replaceAll("&#39;", "'");
    const hash = (text = "") => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
    expect(policy).to.equal(
      `default-src 'none'; style-src ${hash(/<style>([^]*?)<\/style>/.exec(page)?.[1])}; script-src ${hash(/<script>([^]*?)<\/script>/.exec(page)?.[1])}; base-uri 'none'; form-action 'none'`,
    );
    expect(page).not.to.match(/\b(?:src|srcset|action|data|background)="|url\(|@import|https?:/);
  });

  it("S-4: escapes markup of nodes", () => {
    const hostile = `</script></style></textarea>--><img src=x onerror=alert(1)>`;
    const events = recordedRun("failed").map(
      (event) =>
        JSON.parse(
          JSON.stringify(event, (key, value: unknown) =>
            typeof value === "string" &&
            "text message hint title reason want have diff name module command who file".split(" ").includes(key)
              ? `${value}${hostile}`
              : value,
          ),
        ) as RunEvent,
    );
    const page = draw(events, { sourceLine: () => hostile });
    expect(page).not.to.include("<img");
    expect(page).to.match(/<\/script>\n<\/body>/);
  });

  it("compresses the steps of nodes after the first twenty", () => {
    const page = draw(wideRun({ nodes: 80, steps: 24 }));
    const packed = /id="packed">\s*([\w+/=]+)\s*</.exec(page)?.[1] ?? "";
    const bodies = JSON.parse(gunzipSync(Buffer.from(packed, "base64")).toString()) as string[];
    expect(bodies).to.have.length(60);
    expect(bodies[0]).to.include("kcore step 24");
    expect(page.match(/data-packed="/g)).to.have.length(60);
  });

  it("stays below six megabytes with any output", () => {
    const events = wideRun({ nodes: 120, steps: 24 }).map((event, index) =>
      event.type === "step.output"
        ? { ...event, text: createHash("shake256", { outputLength: 3000 }).update(String(index)).digest("hex") }
        : event,
    );
    expect(draw(events).length).to.be.below(6e6);
  });
});
