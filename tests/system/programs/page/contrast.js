// The texts that are seen and have too little contrast (WCAG AA), each with its ratio.
// Axe passes over what stands on a gradient; here the worst of all colours of a background counts.
(() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [red, green, blue, alpha] = canvas.getImageData(0, 0, 1, 1).data;
    return [red, green, blue, alpha / 255];
  };
  const over = (top, below) => below.map((part, at) => at < 3 ? top[at] * top[3] + part * (1 - top[3]) : 1);
  const luminance = (colour) => {
    const [red, green, blue] = colour.slice(0, 3).map((part) => part / 255)
      .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const grey = ([red, green, blue]) => Array(3).fill(0.2126 * red + 0.7152 * green + 0.0722 * blue);
  const seenAs = (element) => (getComputedStyle(document.querySelector("main")).filter === "grayscale(1)"
    && element.closest("main") ? grey : (colour) => colour);
  const ratio = (one, other) => {
    const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (light + 0.05) / (dark + 0.05);
  };
  const grounds = (element) => { // every colour that may lie behind it
    if (!element) return [rgba("Canvas")];
    const style = getComputedStyle(element);
    const colours = [style.backgroundColor, ...(style.backgroundImage.match(/(?:rgba?|color)\([^)]*\)/g) ?? [])].map(rgba);
    const below = colours.some((colour) => colour[3] === 1) && colours[0][3] === 1 ? [rgba("Canvas")] : grounds(element.parentElement);
    const plain = below.map((colour) => over(colours[0], colour));
    return [...plain, ...colours.slice(1).flatMap((colour) => plain.map((under) => over(colour, under)))];
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const text = walker.currentNode.textContent.trim();
    if (!text || !element.checkVisibility({ visibilityProperty: true }) || element.closest("script, style, .unseen")) continue;
    const style = getComputedStyle(element);
    const size = parseFloat(style.fontSize);
    const needed = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700) ? 3 : 4.5;
    const as = seenAs(element);
    const worst = Math.min(...grounds(element).map((ground) => ratio(as(rgba(style.color)), as(ground))));
    if (worst < needed) found.push(`${worst.toFixed(2)} < ${needed}: ${text.slice(0, 60)} (${style.color})`);
  }
  return [...new Set(found)];
})()
