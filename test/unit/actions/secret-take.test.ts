import { expect } from "chai";
import { secretTake } from "#actions/secret-take.ts";
import { knownSecrets, Secret } from "#engine/step/secret.ts";
import { actionContext } from "#support/action-context.ts";

describe("secret.take", () => {
  it("gives a node's answer as a secret, which every view masks from then on", async () => {
    const { changed, outputs } = await secretTake.run({ value: "K10abc::server:join" }, actionContext({}));
    expect([changed, (outputs["secret"] as Secret).reveal()]).to.deep.equal([false, "K10abc::server:join"]);
    expect(JSON.stringify(outputs)).not.to.contain("join");
    expect(knownSecrets().has("K10abc::server:join")).to.equal(true);
  });

  it("leaves a secret as it is, and takes an empty text, which masks nothing", async () => {
    const given = new Secret("kept");
    expect((await secretTake.run({ value: given }, actionContext({}))).outputs["secret"]).to.equal(given);
    await secretTake.plan({ value: "" }, actionContext({ dryRun: true }));
    expect(knownSecrets().has("")).to.equal(false);
  });
});
