"use strict";
(() => {
  const make = (name, kind, text) => {
    const one = document.createElement(name);
    one.className = kind;
    one.textContent = text || "";
    return one;
  };

  // copy a command: by the clipboard, or where the browser allows none (file://), by a selection
  for (const box of document.querySelectorAll(".copy")) {
    const button = make("button", "do", "Copy");
    button.type = "button";
    button.setAttribute("aria-label", "Copy the command");
    button.onclick = async () => {
      const code = box.querySelector("code");
      let done = true;
      try {
        await navigator.clipboard.writeText(code.textContent);
      } catch (refused) {
        getSelection().selectAllChildren(code);
        done = document.execCommand("copy");
      }
      button.textContent = done ? "Copied" : "Press Ctrl+C";
      setTimeout(() => (button.textContent = "Copy"), 1500);
    };
    box.append(button);
  }

  // the values of the step under the pointer
  for (const area of document.querySelectorAll(".area")) {
    const step = Number(area.dataset.step), length = Number(area.dataset.length);
    const series = [...area.querySelectorAll("path")].map((path) => [path.dataset.kind, path.dataset.v.split(" ").map(Number)]);
    const tip = make("div", "tip"), ruler = make("div", "ruler");
    const hide = () => { tip.remove(); ruler.remove(); };
    area.onpointerleave = hide;
    area.onpointermove = (event) => {
      const box = area.getBoundingClientRect(), at = (event.clientX - box.left) / box.width;
      const index = Math.floor((at * length) / step);
      if (index < 0 || at > 1) return hide();
      const rows = series.map(([kind, values]) => [kind, (values[index] || 0) / step]);
      const sum = rows.reduce((total, row) => total + row[1], 0);
      const show = (value) => Math.round(value).toLocaleString("en");
      tip.textContent = [`from ${(index * step).toFixed(2)} s: ${show(sum)} a second`,
        ...rows.filter((row) => row[1]).map((row) => `${show(row[1])} ${row[0]}`)].join("\n");
      ruler.style.left = `${100 * at}%`;
      area.append(ruler, tip);
      tip.style.left = `${Math.max(0, Math.min(at * box.width + 10, box.width - tip.offsetWidth))}px`;
    };
  }

  // a line of text that narrows a table, or the tree
  const filter = (before, label, apply) => {
    const input = make("input", "filter");
    input.type = "search";
    input.placeholder = label;
    input.setAttribute("aria-label", label);
    input.oninput = () => apply(input.value.trim().toLowerCase());
    before.before(input);
  };
  for (const table of document.querySelectorAll(".filterable")) {
    if (table.rows.length < 12) continue;
    filter(table.parentElement, "Only entries with …", (text) => {
      for (const row of table.tBodies[0].rows) row.hidden = !row.textContent.toLowerCase().includes(text);
    });
  }
  const tree = document.querySelector(".tree");
  if (tree && tree.querySelectorAll(".leaf").length > 12) {
    const open = new Map([...tree.querySelectorAll("details")].map((one) => [one, one.open]));
    filter(tree, "Only branches with …", (text) => {
      for (const leaf of tree.querySelectorAll(".leaf")) leaf.hidden = text !== "" && !leaf.textContent.toLowerCase().includes(text);
      for (const branch of [...open.keys()].reverse()) {
        const own = branch.firstElementChild.textContent.toLowerCase().includes(text);
        const below = [...branch.children].slice(1).some((one) => !one.hidden);
        branch.hidden = text !== "" && !own && !below;
        branch.open = text === "" ? open.get(branch) : below;
      }
    });
  }

  // on paper nothing can be opened
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("section > details:not([open])")];
    for (const one of closed) one.open = true;
  });
  addEventListener("afterprint", () => { for (const one of closed) one.open = false; });

  // a click on a heading sorts its table
  for (const table of document.querySelectorAll("table.filterable")) {
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      head.style.cursor = "pointer";
      head.title = "Sort";
      head.onclick = () => {
        const down = head.getAttribute("aria-sort") !== "descending";
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const scale = { s: 1, ms: 1e-3, "µs": 1e-6 };
        const key = (row) => {
          const [number, unit] = row.cells[column].textContent.split(" ");
          const value = Number(number.replace(/,/g, ""));
          return number && !Number.isNaN(value) ? value * (scale[unit] || 1) : row.cells[column].textContent;
        };
        const rows = [...table.tBodies[0].rows].sort((a, b) => {
          const one = key(a), two = key(b);
          const order = typeof one === "number" && typeof two === "number" ? one - two : String(one).localeCompare(String(two));
          return down ? -order : order;
        });
        table.tBodies[0].append(...rows);
      };
    });
  }
})();
