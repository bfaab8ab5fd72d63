// What a page does: draws its charts, sorts, searches and copies its tables. All names are set as text, never as HTML.
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  const views = new Map();
  const copyOf = (value) => JSON.parse(JSON.stringify(value));
  const named = (root, what) => root.querySelector(`[data-do="${what}"]`);

  // ------------------------------------------------------------------------------------------------------- charts

  // Expressions of charts are interpreted, so that the page needs no right to make programs from text.
  const options = (narrow, told = "told") => ({
    actions: false, renderer: "svg", ast: true, defaultStyle: false, tooltip: { disableDefaultStyle: true, id: told },
    config: narrow ? { ...data.config, axis: { ...data.config.axis, labelLimit: 110 }, axisQuantitative: { tickCount: 4 } } : copyOf(data.config),
  });

  function fitted(chart) {
    const spec = copyOf(chart.spec);
    spec.background = null;
    if (!chart.wide) {
      spec.width = "container";
      spec.autosize = { type: "fit-x", contains: "padding", resize: true };
    }
    return spec;
  }

  async function drawn(id) {
    const figure = document.getElementById(id);
    if (views.has(id) || !figure) return views.get(id);
    const place = figure.querySelector(".canvas");
    const promise = vegaEmbed(place, fitted(data.charts[id]), options(place.clientWidth < 420)).then((made) => made.view);
    views.set(id, promise);
    const view = await promise;
    figure.dataset.drawn = "yes";
    return view;
  }

  // Charts in sight come first, the others when there is time; in folded parts once they are opened. One after the
  // other, with a pause in which the page shows what is done: together none would be seen before the last.
  let turn = Promise.resolve();
  const queued = (id) => {
    const pause = () => new Promise((done) => setTimeout(done, 30));
    turn = turn.then(() => drawn(id)).catch((error) => console.error(error)).then(pause);
    return turn;
  };
  const waiting = new Set(Object.keys(data.charts));
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting && waiting.delete(entry.target.id)) {
        seen.unobserve(entry.target);
        queued(entry.target.id);
      }
    }
  }, { rootMargin: "400px" });
  async function rest() {
    for (const id of [...waiting]) {
      const figure = document.getElementById(id);
      if (!figure.offsetParent) continue;
      waiting.delete(id);
      seen.unobserve(figure);
      await queued(id);
    }
    await turn;
    document.documentElement.dataset.ready = "yes";
  }

  async function titled(id) {
    const chart = data.charts[id];
    const spec = copyOf(chart.spec);
    if (!chart.wide) spec.width = 480;
    const lines = (text, most) => {
      const found = [];
      for (const word of text.split(" ")) {
        const last = found.length - 1;
        if (last >= 0 && (found[last] + word).length < most) found[last] += ` ${word}`;
        else found.push(word);
      }
      return found;
    };
    const most = chart.wide ? 150 : 75;
    if (!spec.title) spec.title = { text: lines(chart.sentence, most), subtitle: lines(chart.title, most) };
    spec.background = "white";
    spec.padding = 12;
    return (await vegaEmbed(document.createElement("div"), spec, options())).view;
  }

  async function save(id, form) {
    const view = await titled(id);
    const url = form === "svg"
      ? URL.createObjectURL(new Blob([await view.toSVG()], { type: "image/svg+xml" }))
      : await view.toImageURL("png", 2);
    view.finalize();
    const link = document.createElement("a");
    link.href = url;
    link.download = `${id}.${form}`;
    document.body.append(link);
    link.click();
    link.remove();
    if (form === "svg") setTimeout(() => URL.revokeObjectURL(url), 10000);
  }

  const dialog = document.querySelector("dialog");
  async function enlarge(id) {
    const chart = data.charts[id];
    dialog.querySelector("h2").textContent = chart.title;
    dialog.querySelector(".caption").textContent = chart.sentence;
    const place = dialog.querySelector(".canvas");
    dialog.querySelector(".drawing").setAttribute("aria-label", `${chart.title}: ${chart.sentence}`);
    place.replaceChildren();
    dialog.showModal();
    const spec = fitted(chart);
    if (!chart.wide && typeof spec.height === "number") spec.height = Math.max(spec.height * 1.6, 300);
    const made = await vegaEmbed(place, spec, options(place.clientWidth < 420, "told-enlarged"));
    dialog.addEventListener("close", () => made.view.finalize(), { once: true });
  }

  // ------------------------------------------------------------------------------------------------------- tables

  // As Python writes them: four decimals, three digits where that is less than 0.01. Only j/32 lies between two.
  function number(value) {
    if (value === null) return "";
    if (value === "nan") return "undefined";
    if (typeof value === "string") return value;
    const size = Math.abs(value);
    if (size === 0 || size >= 0.01) {
      if (size >= 1e21) return BigInt(value).toString() + ".0000";
      if (Math.abs((value * 32) % 2) !== 1) return value.toFixed(4);
      const low = Math.floor(size * 10000);
      const even = low % 2 === 0 ? low : low + 1;
      return (value < 0 ? "-" : "") + (even / 10000).toFixed(4);
    }
    const [digits, power] = value.toExponential(2).split("e");
    if (Number(power) >= -4) return String(Number(value.toPrecision(3)));
    const sign = power.startsWith("-") ? "-" : "+";
    return `${Number(digits)}e${sign}${power.replace(/^[+-]/, "").padStart(2, "0")}`;
  }
  const count = (value) => (value === null ? "" : value.toLocaleString("en-US"));
  const chance = (value) => (value === null ? "" : value === "nan" ? "none" : value < 0.0001 ? "<0.0001" : value.toFixed(4));
  const written = { number, count, p: chance, text: (value) => value };

  const runs = /^'*[=+\-@\t\r]/;
  const isNumber = /^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$/;
  function field(value) {
    if (value === null || value === "nan") return "";
    let text = String(value);
    if (typeof value === "string" && runs.test(text) && !isNumber.test(text)) text = `'${text}`;
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  }

  async function copied(text, said) {
    let done = false;
    try {
      await navigator.clipboard.writeText(text);
      done = true;
    } catch {
      const area = document.createElement("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      done = document.execCommand("copy");
      area.remove();
    }
    said.textContent = done ? "Copied." : "This browser does not allow copying.";
  }

  // Long columns of numbers come as eight bytes each.
  function unpacked(column) {
    if (!column.base64) return column;
    const bytes = Uint8Array.from(atob(column.base64), (sign) => sign.charCodeAt(0));
    const plain = (value) => (Number.isFinite(value) ? value : Number.isNaN(value) ? "nan" : value > 0 ? "inf" : "-inf");
    return { ...column, values: Array.from(new Float64Array(bytes.buffer), plain) };
  }

  function table(root, content) {
    const columns = content.columns.map(unpacked).map((column) => ({
      ...column,
      at: column.words ? (row) => column.words[column.values[row]] : (row) => column.values[row],
      text: written[column.kind],
    }));
    const n = columns[0].values.length;
    const heads = [...root.querySelectorAll("th")];
    const body = root.querySelector("tbody");
    const search = named(root, "search");
    const said = root.querySelector(".said");
    const more = named(root, "more");
    let order = [...Array(n).keys()];
    let shown = content.first;

    // numbers by size, what is not there last in either direction
    const size = (value) => (value === "inf" ? Infinity : value === "-inf" ? -Infinity : value === "nan" ? null : value);
    function sort(at) {
      const falling = heads[at].getAttribute("aria-sort") === "ascending";
      for (const head of heads) head.removeAttribute("aria-sort");
      heads[at].setAttribute("aria-sort", falling ? "descending" : "ascending");
      const column = columns[at];
      const turn = falling ? -1 : 1;
      order.sort((first, second) => {
        const [a, b] = [size(column.at(first)), size(column.at(second))];
        if (a === b || (a === null && b === null)) return first - second;
        if (a === null) return 1;
        if (b === null) return -1;
        return turn * (column.kind === "text" ? a.localeCompare(b, "en", { numeric: true }) : a - b);
      });
      show();
    }
    function found() {
      const asked = search ? search.value.trim().toLowerCase() : "";
      if (!asked) return order;
      const texts = columns.filter((column) => column.kind === "text");
      return order.filter((row) => texts.some((column) => column.at(row).toLowerCase().includes(asked)));
    }
    function show() {
      const rows = found();
      body.replaceChildren(...rows.slice(0, shown).map((row) => {
        const line = document.createElement("tr");
        for (const column of columns) {
          const cell = document.createElement("td");
          cell.textContent = column.text(column.at(row));
          if (column.kind !== "text") cell.className = "n";
          else cell.dir = "auto";
          if (cell.textContent.length > 30) cell.className = "long";
          line.append(cell);
        }
        return line;
      }));
      const here = Math.min(shown, rows.length);
      root.querySelector(".count").textContent = `${here.toLocaleString("en-US")} of ${rows.length.toLocaleString("en-US")} rows`;
      more.hidden = here >= rows.length;
    }
    heads.forEach((head, at) => named(head, "sort").addEventListener("click", () => sort(at)));
    if (search) search.addEventListener("input", () => { shown = content.first; show(); });
    more.addEventListener("click", () => { shown = Math.min(shown * 4, shown + 1000); show(); });
    named(root, "copy").addEventListener("click", () => {
      const lines = [columns.map((column) => field(column.name)), ...found().map((row) => columns.map((column) => field(column.at(row))))];
      copied(lines.map((line) => line.join(",")).join("\n") + "\n", said);
    });
  }

  // -------------------------------------------------------------------------------------------------------- start

  for (const [id, content] of Object.entries(data.tables)) table(document.getElementById(id), content);
  for (const id of waiting) {
    const figure = document.getElementById(id);
    seen.observe(figure);
    named(figure, "enlarge").addEventListener("click", () => enlarge(id));
    named(figure, "svg").addEventListener("click", () => save(id, "svg"));
    named(figure, "png").addEventListener("click", () => save(id, "png"));
  }
  for (const button of document.querySelectorAll('[data-do="copy-code"]')) {
    const place = button.closest(".command");
    button.addEventListener("click", () => copied(place.querySelector("code").textContent, place.querySelector(".said")));
  }
  named(dialog, "close").addEventListener("click", () => dialog.close());
  const folds = [...document.querySelectorAll("details")];
  folds.forEach((each) => each.addEventListener("toggle", rest));
  // A link to a folded part opens it; paper shows every part, with charts redrawn at its width.
  const opened = () => {
    const part = document.getElementById(location.hash.slice(1))?.querySelector("details");
    if (part) part.open = true;
  };
  addEventListener("hashchange", opened);
  opened();
  addEventListener("beforeprint", () => folds.forEach((each) => { each.open = true; }));
  setTimeout(rest, 60);
})();
