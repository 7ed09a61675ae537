/* oxlint-disable typescript/no-misused-promises, typescript/no-unsafe-argument, typescript/no-unsafe-assignment, typescript/no-unsafe-call, typescript/no-unsafe-member-access, typescript/no-unsafe-return -- plain JavaScript for a browser: no type of the DOM is known here */
// The script of a run's page: filters rows, opens them, zooms, and shows the text of a bar. Without the script the page lacks only
// bodies of rows that a report has packed, or that kcore web serves on demand. Texts from nodes enter the page through textContent,
// or as HTML that the server or report.ts has escaped.
"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const box = byId("lanes");
  if (!box) return;
  let lanes = [...box.querySelectorAll(".lane")];

  const once = (make) => {
    let made;
    return () => (made ??= make());
  };
  const unpack = async (id) => {
    const bytes = Uint8Array.from(atob(byId(id).textContent), (character) => character.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).json();
  };

  // The source of bodies, bars and search results in a report: packed data in the page itself.
  const packedSource = () => {
    const own = lanes;
    const bodies = once(() => unpack("packed"));
    const bars = once(() => unpack("bars"));
    const texts = once(async () =>
      (await bars()).map((pieces, index) =>
        [own[index].dataset.name, ...pieces.map(([, , text]) => text)].join("\n").toLowerCase(),
      ),
    );
    return {
      body: async ({ dataset }) => (await bodies())[dataset.packed],
      bars: async (lane) => (await bars())[own.indexOf(lane)],
      find: async (words) => {
        const all = await texts();
        return new Set(own.filter((_, index) => words.every((word) => all[index].includes(word))).map(({ id }) => id));
      },
    };
  };
  // The same source in kcore web: the server.
  const serverSource = (base) => {
    const get = async (path) => {
      const answer = await fetch(base + path);
      if (!answer.ok) throw new Error(`${answer.status} for ${path}`);
      return answer;
    };
    const known = new Map();
    return {
      body: async ({ id }) => (await get(`/rows/${id}`)).text(),
      bars: ({ id }) => {
        if (!known.has(id))
          known.set(
            id,
            get(`/rows/${id}/bars`).then((answer) => answer.json()),
          );
        return known.get(id);
      },
      forget: ({ id }) => known.delete(id),
      find: async (words) => new Set(await (await get(`/find?words=${encodeURIComponent(words.join(" "))}`)).json()),
    };
  };
  const { live } = box.dataset;
  const rest = live === undefined ? packedSource() : serverSource(live);

  // ---- rows -------------------------------------------------------------------------------------------------------

  const fill = async (lane) => {
    if (live === undefined && lane.dataset.packed === undefined) return;
    const text = await rest.body(lane);
    delete lane.dataset.packed;
    // Outputs that the reader opened stay open, and texts stay scrolled.
    const body = lane.querySelector(".body");
    const keyOf = (one) => `${one.closest("[data-key]")?.dataset.key} ${one.getAttribute("aria-label") ?? ""}`;
    const positions = new Map(
      [...body.querySelectorAll("pre")].map((pre) => [
        keyOf(pre),
        {
          open: pre.parentElement.open,
          top: pre.scrollTop,
          isEnd: pre.scrollTop + pre.clientHeight > pre.scrollHeight - 8,
        },
      ]),
    );
    body.innerHTML = text;
    for (const pre of body.querySelectorAll("pre")) {
      const position = positions.get(keyOf(pre));
      if (position?.open !== undefined && "open" in pre.parentElement) pre.parentElement.open = position.open;
      if (position) pre.scrollTop = position.isEnd ? pre.scrollHeight : position.top;
    }
  };
  box.addEventListener(
    "toggle",
    (event) => void (event.target.open && event.target.matches(".lane") && fill(event.target)),
    true,
  );
  const openTarget = async () => {
    const lane = lanes.find(({ id }) => `#${id}` === location.hash);
    if (!lane) return;
    lane.hidden = false;
    await fill(lane);
    lane.open = true;
    lane.scrollIntoView();
    lane.firstElementChild.focus({ preventScroll: true });
  };
  addEventListener("hashchange", openTarget);
  void openTarget();

  // ---- finding ----------------------------------------------------------------------------------------------------

  const controls = byId("controls");
  const filter = async () => {
    const words = byId("find").value.toLowerCase().split(/\s+/).filter(Boolean);
    const kind = controls.elements.show.value;
    const found = words.length > 0 ? await rest.find(words) : undefined;
    let shown = 0;
    for (const lane of lanes) {
      const fits =
        (kind === "all" || lane.dataset.kinds.split(" ").includes(kind)) && (found === undefined || found.has(lane.id));
      if (lane.hidden === fits) lane.hidden = !fits;
      if (fits) shown += 1;
    }
    byId("none").hidden = shown > 0;
    const all = lanes.length.toLocaleString("en");
    byId("shown").textContent =
      shown === lanes.length ? `${all} shown` : `${shown.toLocaleString("en")} of ${all} shown`;
  };
  let waiting;
  controls.addEventListener("input", (event) => {
    if (event.target.id === "pan") return;
    clearTimeout(waiting);
    waiting = setTimeout(filter, event.target.id === "find" ? 80 : 0);
  });
  controls.addEventListener("submit", (event) => event.preventDefault());
  byId("clear").addEventListener("click", () => {
    controls.reset();
    byId("find").focus();
    void filter();
  });

  // ---- zoom -------------------------------------------------------------------------------------------------------

  const axis = byId("axis");
  let long = Number(axis.dataset.long);
  let zoom = 1;
  let at = 0;
  const tickText = (milliseconds) => {
    const seconds = milliseconds / 1000;
    const step = long / zoom / 4000;
    if (step < 1) return `${seconds.toFixed(step < 0.01 ? 3 : step < 0.1 ? 2 : 1)} s`;
    // Tenths, as in timeline.ts: ticks 1.5 s apart must not read as 2 s apart.
    if (seconds < 60) return `${Number(seconds.toFixed(1))} s`;
    const whole = Math.round(seconds);
    const [hours, minutes] = [Math.floor(whole / 3600), Math.floor((whole % 3600) / 60)];
    return hours > 0 ? `${hours} h ${minutes} min` : `${minutes} min ${String(whole % 60).padStart(2, "0")} s`;
  };
  const zoomTo = (wanted, middle) => {
    zoom = Math.min(128, Math.max(1, wanted));
    at = Math.min(1 - 1 / zoom, Math.max(0, middle - 0.5 / zoom));
    box.style.setProperty("--zoom", zoom);
    box.style.setProperty("--at", at);
    for (const [index, tick] of [...axis.children].entries())
      tick.textContent = tickText(long * (at + index / 4 / zoom));
    byId("out").disabled = byId("whole").disabled = zoom === 1;
    byId("in").disabled = zoom === 128;
    const pan = byId("pan");
    pan.parentElement.hidden = zoom === 1;
    pan.value = zoom === 1 ? 0 : (at / (1 - 1 / zoom)) * 1000;
  };
  const middle = () => at + 0.5 / zoom;
  byId("in").addEventListener("click", () => zoomTo(zoom * 2, middle()));
  byId("out").addEventListener("click", () => {
    zoomTo(zoom / 2, middle());
    if (zoom === 1) byId("in").focus();
  });
  byId("whole").addEventListener("click", () => {
    zoomTo(1, 0.5);
    byId("in").focus();
  });
  byId("pan").addEventListener("input", ({ target }) =>
    zoomTo(zoom, (target.value / 1000) * (1 - 1 / zoom) + 0.5 / zoom),
  );

  // ---- the text of a bar: under the pointer, or by the arrow keys on a row ----------------------------------------

  const tip = document.createElement("p");
  tip.id = "tip";
  tip.setAttribute("role", "status");
  tip.hidden = true;
  document.body.append(tip);
  const showTip = (text, x, y) => {
    tip.textContent = text;
    tip.hidden = false;
    tip.style.left = `${Math.max(8, Math.min(x, innerWidth - tip.offsetWidth - 8))}px`;
    tip.style.top = `${y + 18 + tip.offsetHeight > innerHeight ? y - tip.offsetHeight - 8 : y + 18}px`;
  };
  const hideTip = () => (tip.hidden = true);
  box.addEventListener("pointermove", async ({ target, clientX, clientY }) => {
    const track = target.closest?.(".lane > summary .track");
    if (!track) return hideTip();
    const lane = track.closest(".lane");
    const own = await rest.bars(lane);
    const { left, width } = track.getBoundingClientRect();
    const unit = 10000 / zoom / width;
    const x = at * 10000 + (clientX - left) * unit;
    const near = own.filter(([from, to]) => x >= from - 3 * unit && x <= to + 3 * unit);
    if (near.length === 0) return hideTip();
    const more = near.length > 6 ? `\n… and ${near.length - 6} more` : "";
    showTip(
      near
        .slice(-6)
        .map(([, , text]) => text)
        .join("\n") + more,
      clientX,
      clientY,
    );
    tip.style.whiteSpace = "pre-line";
  });
  box.addEventListener("pointerleave", hideTip);
  let cursor = { lane: undefined, index: -1 };
  box.addEventListener("keydown", async (event) => {
    const summary = event.target.closest?.(".lane > summary");
    if (!summary || event.ctrlKey || event.altKey || event.metaKey) return;
    const lane = summary.parentElement;
    const visible = () => lanes.filter(({ hidden }) => !hidden);
    const go = (by) => {
      const rows = visible();
      rows[Math.min(rows.length - 1, Math.max(0, rows.indexOf(lane) + by))]?.firstElementChild.focus();
    };
    const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity };
    if (event.key in moves) {
      event.preventDefault();
      return go(moves[event.key]);
    }
    if (event.key === "Escape") return hideTip();
    if (event.key === "+" || event.key === "=") return byId("in").click();
    if (event.key === "-") return byId("out").click();
    if (event.key !== "ArrowRight" && event.key !== "ArrowLeft") return;
    event.preventDefault();
    const own = await rest.bars(lane);
    if (own.length === 0) return;
    if (cursor.lane !== lane) cursor = { lane, index: event.key === "ArrowRight" ? -1 : own.length };
    cursor.index = Math.min(own.length - 1, Math.max(0, cursor.index + (event.key === "ArrowRight" ? 1 : -1)));
    const [from, to, text] = own[cursor.index];
    if (zoom > 1) zoomTo(zoom, (from + to) / 20000);
    const { left, width, top } = summary.querySelector(".track").getBoundingClientRect();
    showTip(`${cursor.index + 1} of ${own.length}. ${text}`, left + ((from + to) / 20000 - at) * zoom * width, top);
  });
  box.addEventListener("focusout", hideTip);

  // ---- while the run goes on --------------------------------------------------------------------------------------

  // web-page.js sends this event after a change: the changed rows, and the milliseconds that the bars span now.
  box.addEventListener("kcore:news", ({ detail: { changed, long: now } }) => {
    lanes = [...box.querySelectorAll(".lane")];
    const isLonger = now !== undefined && now !== long;
    for (const lane of isLonger ? lanes : changed) {
      rest.forget(lane);
      if (lane.open) void fill(lane);
    }
    if (isLonger) {
      long = now;
      zoomTo(zoom, middle());
    }
    void filter();
  });
})();
