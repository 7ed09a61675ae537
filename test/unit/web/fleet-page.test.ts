import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { drawFleet } from "#web/fleet-page.ts";
import { fleetNow, smallFleet } from "#support/fleet.ts";

describe("the fleet's page", () => {
  it("has its headings beside the values in a narrow window", () => {
    const page = drawFleet(
      { snapshot: smallFleet(), link: { state: "live", endpoint: "192.0.2.11:9090" } },
      fleetNow,
      "",
    ).source;
    expect(page)
      .to.match(/<td data-label="ADDRESS">/)
      .and.to.not.match(/<td>[^<]/);
    const css = readFileSync(join(import.meta.dirname, "../../../src/web/web-page.css"), "utf8");
    const phone = css.slice(css.indexOf("@media (max-width: 40rem)"));
    expect(phone).to.match(/td\[data-label\][^{]*::before \{\s*content: attr\(data-label\)/);
  });
});
