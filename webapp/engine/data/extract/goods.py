"""Goods: our own lists of what shops sell."""

from __future__ import annotations

import pyarrow as pa

CATALOGUE: dict[str, tuple[str, str]] = {
    # category: (code for stock numbers, goods)
    "Automotive": (
        "AUT",
        "Air Compressor|Battery Charger|Brake Pad Set|Car Cover|Car Vacuum|Dash Camera|Floor Mat Set|"
        "Headlight Bulb|Jump Starter|Key Holder|License Plate Frame|Motor Oil|Phone Mount|Roof Box|"
        "Seat Cover|Steering Wheel Cover|Sunshade|Tire Inflator|Tool Roll|Tow Strap|Trunk Organizer|"
        "Wax Kit|Wheel Cleaner|Wiper Blade",
    ),
    "Baby": (
        "BAB",
        "Baby Blanket|Baby Bottle|Baby Carrier|Baby Monitor|Bath Seat|Bib Set|Bottle Warmer|"
        "Building Blocks|Changing Mat|Cot Mobile|Crib Sheet|Diaper Bag|Feeding Bowl|High Chair|"
        "Night Light|Nursing Pillow|Pacifier Clip|Play Mat|Rattle|Sleep Sack|Stroller|Swaddle Wrap|"
        "Teether|Toddler Cup",
    ),
    "Beauty": (
        "BEA",
        "Bath Salts|Beard Oil|Body Lotion|Body Scrub|Conditioner|Cotton Pads|Curling Iron|Eye Cream|"
        "Face Mask|Face Serum|Hair Brush|Hair Dryer|Hand Cream|Lip Balm|Makeup Bag|Mirror|Moisturizer|"
        "Nail File Set|Perfume|Razor|Shampoo|Soap Bar|Sunscreen|Toothbrush",
    ),
    "Books & Stationery": (
        "BKS",
        "Address Book|Bookend Pair|Bookmark Set|Calligraphy Set|Colored Pencils|Desk Calendar|Desk Pad|"
        "Envelope Pack|Eraser Set|Fountain Pen|Gel Pen Set|Gift Wrap|Greeting Cards|Highlighter Set|"
        "Journal|Letter Opener|Marker Set|Notebook|Paper Tray|Pencil Case|Planner|Ring Binder|Ruler|"
        "Sketchbook|Sticky Notes|Watercolor Set",
    ),
    "Clothing": (
        "CLO",
        "Bathrobe|Beanie|Belt|Blazer|Blouse|Cardigan|Chinos|Denim Jacket|Dress|Gloves|Hoodie|Jeans|"
        "Leggings|Pajama Set|Parka|Polo Shirt|Rain Jacket|Scarf|Shirt|Shorts|Skirt|Socks|Sweater|T-Shirt|"
        "Tie|Trousers|Vest|Windbreaker",
    ),
    "Electronics": (
        "ELE",
        "Action Camera|Bluetooth Speaker|Charging Cable|Desk Lamp|Digital Clock|Drone|E-Reader|Earbuds|"
        "Extension Cord|Game Controller|Graphics Tablet|Headphones|Keyboard|Laptop Stand|Memory Card|"
        "Microphone|Monitor|Mouse|Power Bank|Power Strip|Projector|Router|Smart Plug|Smartwatch|Soundbar|"
        "Tablet|USB Hub|Wall Charger|Webcam",
    ),
    "Food & Drink": (
        "FOO",
        "Almond Butter|Apple Cider|Breakfast Cereal|Chocolate Bar|Coconut Water|Coffee Beans|Dried Mango|"
        "Fruit Jam|Gingerbread|Granola|Green Tea|Honey|Hot Sauce|Lentil Soup|Maple Syrup|Mustard|"
        "Oat Cookies|Olive Oil|Pasta Sauce|Peanut Mix|Popcorn|Potato Chips|Rice Crackers|Sea Salt|"
        "Sparkling Juice|Spice Mix|Trail Mix|Vinegar",
    ),
    "Furniture": (
        "FUR",
        "Armchair|Bar Stool|Bed Frame|Bench|Bookcase|Cabinet|Coat Rack|Coffee Table|Console Table|Couch|"
        "Desk|Dining Chair|Dining Table|Dresser|Filing Cabinet|Footstool|Headboard|Nightstand|"
        "Office Chair|Ottoman|Picture Ledge|Rocking Chair|Shelf|Shoe Rack|Side Table|Sideboard|Wardrobe|"
        "Wine Rack",
    ),
    "Garden": (
        "GAR",
        "Bird Feeder|Bug Net|Compost Bin|Deck Box|Fire Pit|Flower Pot|Garden Fork|Garden Gnome|"
        "Garden Hose|Grow Light|Hammock|Hedge Trimmer|Lantern|Lawn Chair|Leaf Rake|Parasol|Plant Stand|"
        "Planter|Pruning Shears|Rain Gauge|Seed Tray|Sprinkler|String Lights|Trellis|Trowel|Watering Can|"
        "Wheelbarrow|Wind Chime",
    ),
    "Grocery": (
        "GRO",
        "Aluminum Foil|Baking Flour|Baking Powder|Black Beans|Bread Mix|Brown Sugar|Butter Cookies|"
        "Canned Corn|Cheese Crackers|Chickpeas|Cornmeal|Couscous|Dish Soap|Egg Noodles|Freezer Bags|"
        "Kidney Beans|Laundry Detergent|Oatmeal|Pancake Mix|Paper Towels|Quinoa|Rice|Spaghetti|"
        "Tomato Paste|Tortillas|Tuna Can|Vegetable Broth|Yeast",
    ),
    "Health": (
        "HEA",
        "Bandage Roll|Blood Pressure Monitor|Cold Pack|Cooling Gel|Ear Plugs|Eye Drops|First Aid Kit|"
        "Foot Insole|Hand Sanitizer|Heating Pad|Humidifier|Knee Brace|Lumbar Cushion|Massage Ball|"
        "Massage Gun|Medicine Box|Multivitamin|Neck Pillow|Protein Powder|Reading Glasses|Scale|"
        "Sleep Mask|Thermometer|Wrist Support",
    ),
    "Jewelry": (
        "JEW",
        "Anklet|Bangle|Bracelet|Brooch|Chain|Charm|Choker|Cufflinks|Earrings|Engagement Ring|Hair Clip|"
        "Hair Pin|Jewelry Box|Lapel Pin|Locket|Necklace|Pendant|Ring|Stud Set|Tie Clip|Tiara|Watch|"
        "Watch Strap|Wedding Band",
    ),
    "Kitchen": (
        "KIT",
        "Baking Sheet|Blender|Bread Box|Butter Dish|Can Opener|Casserole Dish|Chopping Board|"
        "Coffee Grinder|Coffee Maker|Colander|Cooling Rack|Cutlery Set|Dish Rack|Espresso Cup|"
        "Food Container|Frying Pan|Kettle|Knife|Ladle|Measuring Cup|Mixing Bowl|Mug|Pepper Mill|"
        "Pizza Stone|Rolling Pin|Salad Spinner|Saucepan|Spatula|Teapot|Toaster|Water Bottle|Whisk",
    ),
    "Music": (
        "MUS",
        "Acoustic Guitar|Amplifier|Bass Guitar|Bongo Drums|Capo|Cello Bow|Clarinet|Drum Pad|Drum Sticks|"
        "Effects Pedal|Flute|Guitar Stand|Guitar Strap|Harmonica|Kalimba|Keyboard Stand|Metronome|"
        "Microphone Stand|Music Stand|Piano Bench|Record Player|Recorder|Tambourine|Tuner|Ukulele|Violin|"
        "Violin Case|Xylophone",
    ),
    "Office": (
        "OFF",
        "Badge Holder|Binder Clips|Calculator|Cash Box|Clipboard|Copy Paper|Desk Fan|Desk Organizer|"
        "Document Scanner|File Folder|Hole Punch|Label Maker|Laminator|Laser Pointer|Mail Scale|"
        "Monitor Arm|Mouse Pad|Paper Shredder|Pen Holder|Printer|Rubber Stamp|Staple Remover|Stapler|"
        "Tape Dispenser|Wall Clock|Waste Basket|Whiteboard|Wrist Rest",
    ),
    "Outdoors": (
        "OUT",
        "Backpack|Bear Canister|Binoculars|Camp Stove|Camping Chair|Climbing Rope|Compass|Cooler|Dry Bag|"
        "Fishing Rod|Flashlight|Ground Sheet|Hand Warmer|Headlamp|Hiking Boots|Hydration Pack|"
        "Kayak Paddle|Lantern Pole|Mess Kit|Multi Tool|Rain Poncho|Sleeping Bag|Sleeping Pad|Snowshoes|"
        "Tent|Trekking Poles|Water Filter|Whistle",
    ),
    "Pets": (
        "PET",
        "Aquarium|Bird Cage|Cat Bed|Cat Litter|Cat Tree|Chew Toy|Dog Bed|Dog Bowl|Dog Collar|Dog Harness|"
        "Dog Leash|Fish Food|Flea Comb|Grooming Brush|Hamster Wheel|Litter Box|Nail Clipper|Pet Blanket|"
        "Pet Carrier|Pet Gate|Pet Shampoo|Puppy Pads|Rope Toy|Scratching Post|Treat Jar|Water Fountain",
    ),
    "Sports": (
        "SPO",
        "Badminton Set|Baseball Glove|Basketball|Bike Helmet|Bike Light|Bike Lock|Boxing Gloves|"
        "Dart Board|Dumbbell|Exercise Ball|Exercise Bike|Football|Golf Balls|Gym Bag|Jump Rope|Kettlebell|"
        "Resistance Band|Rowing Machine|Running Shoes|Skateboard|Ski Goggles|Soccer Ball|Swim Cap|"
        "Table Tennis Bat|Tennis Racket|Volleyball|Yoga Block|Yoga Mat",
    ),
    "Tools": (
        "TOO",
        "Allen Key Set|Caulking Gun|Chisel|Clamp|Cordless Drill|Crowbar|Drill Bit Set|Extension Ladder|"
        "Glue Gun|Hacksaw|Hammer|Hand Saw|Heat Gun|Level|Nail Gun|Paint Roller|Pipe Wrench|Pliers|Sander|"
        "Screwdriver|Socket Set|Stud Finder|Tape Measure|Tool Box|Utility Knife|Vise|Work Gloves|Workbench",
    ),
    "Toys & Games": (
        "TOY",
        "Balance Board|Board Game|Building Set|Card Game|Chess Set|Clay Kit|Costume|Dice Set|Doll|"
        "Domino Set|Finger Paint|Jigsaw Puzzle|Juggling Balls|Kite|Magic Kit|Marble Run|Model Train|"
        "Plush Bear|Puppet|Puzzle Cube|Rocking Horse|Science Kit|Slime Kit|Spinning Top|Stacking Cups|"
        "Tea Set|Toy Car|Toy Robot|Water Blaster|Yo-Yo",
    ),
}

ADJECTIVES = (
    "Adjustable|Advanced|Awesome|Basic|Bold|Bright|Classic|Compact|Convenient|Cozy|Deluxe|Durable|Eco|"
    "Elegant|Ergonomic|Essential|Everyday|Fantastic|Foldable|Fresh|Generic|Gorgeous|Handcrafted|Handmade|"
    "Incredible|Intelligent|Large|Lightweight|Limited|Luxury|Mini|Modern|Natural|Original|Portable|"
    "Practical|Premium|Professional|Quiet|Recycled|Refined|Reliable|Rustic|Simple|Sleek|Small|Smart|Soft|"
    "Sturdy|Stylish|Sustainable|Timeless|Traditional|Travel|Ultra|Universal|Versatile|Vintage|Waterproof|"
    "Wireless"
)

STYLES = (
    "Amber|Aqua|Arctic|Aurora|Autumn|Azure|Bamboo|Birch|Black|Blue|Bronze|Carbon|Cedar|Charcoal|Cherry|"
    "Chrome|Cobalt|Copper|Coral|Crimson|Crystal|Desert|Ebony|Emerald|Forest|Gold|Graphite|Green|Indigo|"
    "Ivory|Jade|Lavender|Lime|Mahogany|Maple|Marble|Midnight|Mint|Nordic|Oak|Ocean|Olive|Onyx|Orange|"
    "Pearl|Pine|Platinum|Purple|Red|Ruby|Sage|Sapphire|Scarlet|Silver|Slate|Steel|Sunset|Teal|Titanium|"
    "Turquoise|Urban|Walnut|White|Yellow"
)


def catalogue() -> pa.Table:
    """``category``, ``code`` (three letters) and ``product``, a row for each kind of thing sold."""
    rows = [(name, code, thing) for name, (code, things) in CATALOGUE.items() for thing in things.split("|")]
    names = [thing for _, _, thing in rows]
    if len(set(names)) != len(names):
        raise ValueError(f"listed twice: {sorted({name for name in names if names.count(name) > 1})}")
    categories, codes, products = zip(*rows, strict=True)
    return pa.table({"category": categories, "code": codes, "product": products})


def adjectives() -> dict[str, list[str]]:
    """Words that stand first in a product's name."""
    return {"": ADJECTIVES.split("|")}


def styles() -> dict[str, list[str]]:
    """Colours and materials that stand before the thing in a product's name."""
    return {"": STYLES.split("|")}
