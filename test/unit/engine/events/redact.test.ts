import { expect } from "chai";
import type { RunEventBody } from "#engine/events/event.ts";
import { createRedactor } from "#engine/events/redact.ts";

const secret = "s3cret/pass+word";
const output = (text: string, step = "a/b"): RunEventBody => ({
  type: "step.output",
  node: "n1",
  step,
  stream: "out",
  text,
});
const texts = (events: readonly RunEventBody[]) =>
  events.map((event) => (event.type === "step.output" ? event.text : event.type));

describe("the redactor", () => {
  it("masks a secret in every string of an event (S-7)", () => {
    const redactor = createRedactor([secret]);
    const [event] = redactor.pass({
      type: "node.finished",
      node: "n1",
      outcome: "failed",
      problem: { code: "INTERNAL", message: `bad ${secret}`, detail: secret, hint: `try ${secret}!` },
    });
    expect(event).to.have.nested.property("problem.message", "bad ***");
    expect(JSON.stringify(event)).to.not.contain(secret);
  });

  it("masks a secret in output that is no UTF-8, cut anywhere, and keeps all other bytes (S-7)", () => {
    const whole = Buffer.concat([Buffer.from([0xff, 0x0d]), Buffer.from(`é${secret}`), Buffer.from([0xc3, 0x28])]);
    const wanted = Buffer.concat([Buffer.from([0xff, 0x0d]), Buffer.from("é***"), Buffer.from([0xc3, 0x28])]);
    const piece = (bytes: Buffer): RunEventBody => {
      const text = bytes.toString("utf8").replaceAll("\r", "\n");
      const exact = Buffer.from(text).equals(bytes) ? {} : { bytes: bytes.toString("base64") };
      return { type: "step.output", node: "n1", step: "a/b", stream: "out", text, ...exact };
    };
    for (let cut = 0; cut <= whole.length; cut++) {
      const redactor = createRedactor([secret]);
      const parts = [whole.subarray(0, cut), whole.subarray(cut)].map(piece);
      const passed = [...parts.flatMap((part) => redactor.pass(part)), ...redactor.flush()];
      const printed = passed.map((event) => {
        if (event.type !== "step.output") return Buffer.alloc(0);
        return event.bytes === undefined ? Buffer.from(event.text) : Buffer.from(event.bytes, "base64");
      });
      expect(Buffer.concat(printed).toString("hex"), `cut at ${cut}`).to.equal(wanted.toString("hex"));
      expect(texts(passed).join(""), `cut at ${cut}`).to.not.contain("s3cret/pass");
    }
  });

  it("masks a secret cut between two outputs of an action, and releases held output when the action ends (S-7)", () => {
    const action = { stage: "tag", action: "local.command" } as const;
    const redactor = createRedactor([secret]);
    const piece = (text: string): RunEventBody => ({ type: "action.output", ...action, stream: "err", text });
    const passed = [
      ...redactor.pass(piece(`begin ${secret.slice(0, 5)}`)),
      ...redactor.pass(piece(`${secret.slice(5)} ${secret.slice(0, 4)}`)),
      ...redactor.pass({ type: "action.finished", ...action, outcome: "ok" }),
    ];
    expect(passed.map((event) => ("text" in event ? event.text : event.type))).to.deep.equal([
      "begin ",
      "*** ",
      secret.slice(0, 4),
      "action.finished",
    ]);
  });

  it("holds back only a possible start of a secret, and releases it before the step's next event", () => {
    const redactor = createRedactor([secret]);
    expect(texts(redactor.pass(output("hello s3c")))).to.deep.equal(["hello "]);
    const end = redactor.pass({ type: "step.note", node: "n1", step: "a/b", text: "x" });
    expect([texts(end), redactor.flush()]).to.deep.equal([["s3c", "step.note"], []]);
  });

  it("joins no output of different steps or streams", () => {
    const redactor = createRedactor([secret]);
    redactor.pass(output(secret.slice(0, 5), "a/b"));
    expect(texts(redactor.pass(output(secret.slice(5), "c/d")))).to.deep.equal([secret.slice(5)]);
    const error = { ...output(secret.slice(5)), stream: "err" } as RunEventBody;
    expect(texts(redactor.pass(error)), "another stream").to.deep.equal([secret.slice(5)]);
  });

  it("masks secrets that become known after its creation", () => {
    const known = new Set<string>();
    const redactor = createRedactor([], () => known);
    expect(redactor.text(secret)).to.equal(secret);
    known.add(secret);
    expect(redactor.text(`x${secret}x`)).to.equal("x***x");
    known.add("one more");
    expect(redactor.text("one more")).to.equal("***");
    redactor.add("another one");
    expect(redactor.text("another one")).to.equal("***");
  });

  it("masks the longer of two nested secrets, and no secret of three letters", () => {
    expect(createRedactor(["pass", "password"]).text("a password, a pass")).to.equal("a ***, a ***");
    expect(createRedactor(["yes"]).text("yes")).to.equal("yes");
  });

  it("masks each line of a multi-line secret", () => {
    const pem =
      "-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49AgEG\nCCqGSM49AwEHBG0wawIBAQQg\n-----END PRIVATE KEY-----\n";
    expect(createRedactor([pem]).text("it said CCqGSM49AwEHBG0wawIBAQQg, strange")).to.equal("it said ***, strange");
  });
});
